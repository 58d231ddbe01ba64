/* Calls of the interface as an application makes them, for the tests: calls start | refuse | thread */
#include <pthread.h>
#include <quda.h>
#include <quda_milc_interface.h>
#include <string.h>

static void *from_a_thread(void *nothing) {
  QudaGaugeParam param = newQudaGaugeParam();
  (void)param;
  return nothing;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  char prefix[] = "test: ";
  setVerbosityQuda(QUDA_SUMMARIZE, prefix, stdout);
  initQuda(-1);
  QudaInvertParam param = newQudaInvertParam();
  if (param.dslash_type != (QudaDslashType)QUDA_INVALID_ENUM || param.preconditioner) {
    return 2;
  }
  param.dslash_type = QUDA_CLOVER_WILSON_DSLASH;
  param.kappa = 0.125;
  param.offset[1] = 0.5;
  printQudaInvertParam(&param);
  if (!strcmp(mode, "refuse")) {
    qudaAsqtadForce(2, NULL, NULL, NULL, NULL, NULL);
  }
  if (!strcmp(mode, "thread")) {
    pthread_t thread;
    pthread_create(&thread, NULL, from_a_thread, NULL);
    pthread_join(thread, NULL);
  }
  endQuda();
  return 0;
}
