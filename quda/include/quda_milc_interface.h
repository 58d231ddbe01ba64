/* Made of the tables of the crate ferrite-quda; do not edit. Compile applications against this header, and link them to
   libferrite_quda. It has the names of QUDA's C interface, and a layout of its own. */
#pragma once
#include "enum_quda.h"
#include "quda.h"
#ifdef __cplusplus
extern "C" {
#endif
typedef struct QudaMILCSiteArg_t_s {
  void *site;
  void *link;
  size_t link_offset;
  void *mom;
  size_t mom_offset;
  size_t size;
} QudaMILCSiteArg_t;
typedef struct QudaInvertArgs_t_s {
  int max_iter;
  QudaParity evenodd;
  int mixed_precision;
  double boundary_phase[4];
  int make_resident_solution;
  int use_resident_solution;
  QudaInverterType solver_type;
  double tadpole;
  double naik_epsilon;
} QudaInvertArgs_t;
typedef struct QudaEigArgs_t_s {
  QudaPrecision prec_ritz;
  int nev;
  int max_search_dim;
  int deflation_grid;
  double tol_restart;
  int eigcg_max_restarts;
  int max_restart_num;
  double inc_tol;
  double eigenval_tol;
  QudaExtLibType solver_ext_lib;
  QudaExtLibType deflation_ext_lib;
  QudaFieldLocation location_ritz;
  QudaMemoryType mem_type_ritz;
  char *vec_infile;
  char *vec_outfile;
} QudaEigArgs_t;
typedef struct QudaLayout_t_s {
  const int *latsize;
  const int *machsize;
  int device;
} QudaLayout_t;
typedef struct QudaInitArgs_t_s {
  QudaVerbosity verbosity;
  QudaLayout_t layout;
} QudaInitArgs_t;
typedef struct QudaHisqParams_t_s {
  int reunit_allow_svd;
  int reunit_svd_only;
  double reunit_svd_abs_error;
  double reunit_svd_rel_error;
  double force_filter;
} QudaHisqParams_t;
typedef struct QudaFatLinkArgs_t_s {
  int su3_source;
  int use_pinned_memory;
} QudaFatLinkArgs_t;
typedef struct QudaContractArgs_t_s {
  int n_mom;
  int *mom_modes;
  QudaFFTSymmType *fft_type;
  int *source_position;
  double flops;
  double dtime;
} QudaContractArgs_t;
typedef struct QudaTwoLinkQuarkSmearArgs_t_s {
  int n_steps;
  double width;
  int compute_2link;
  int delete_2link;
  int t0;
  int laplaceDim;
} QudaTwoLinkQuarkSmearArgs_t;
void qudaSetMPICommHandle(void *mycomm);
void qudaInit(QudaInitArgs_t input);
void qudaSetLayout(QudaLayout_t layout);
void qudaFinalize(void);
void *qudaAllocatePinned(size_t bytes);
void qudaFreePinned(void *ptr);
void *qudaAllocateManaged(size_t bytes);
void qudaFreeManaged(void *ptr);
void qudaHisqParamsInit(QudaHisqParams_t hisq_params);
void qudaLoadKSLink(int precision, QudaFatLinkArgs_t fatlink_args, double *act_path_coeff, void *inlink, void *fatlink, void *longlink);
void qudaLoadUnitarizedLink(int precision, QudaFatLinkArgs_t fatlink_args, double *path_coeff, void *inlink, void *fatlink, void *ulink);
void qudaShift(int external_precision, int quda_precision, const void *links, void *source, void *solution, int dir, int sym, int reloadGaugeField);
void qudaSpinTaste(int external_precision, int quda_precision, const void *links, void *src, void *dst, int spin, int taste, int reloadGaugeField);
void qudaDslash(int external_precision, int quda_precision, QudaInvertArgs_t inv_args, const void *milc_fatlink, const void *milc_longlink, void *source, void *solution, int *num_iters);
void qudaDDInvert(int external_precision, int quda_precision, double mass, QudaInvertArgs_t inv_args, double target_residual, double target_fermilab_residual, const int *domain_overlap, const void *fatlink, const void *longlink, void *source, void *solution, double *final_residual, double *final_fermilab_residual, int *num_iters);
void qudaInvert(int external_precision, int quda_precision, double mass, QudaInvertArgs_t inv_args, double target_residual, double target_fermilab_residual, const void *milc_fatlink, const void *milc_longlink, void *source, void *solution, double *final_resid, double *final_rel_resid, int *num_iters);
void *qudaMultigridCreate(int external_precision, int quda_precision, double mass, QudaInvertArgs_t inv_args, const void *milc_fatlink, const void *milc_longlink, const char *mg_param_file);
void qudaInvertMG(int external_precision, int quda_precision, double mass, QudaInvertArgs_t inv_args, double target_residual, double target_fermilab_residual, const void *milc_fatlink, const void *milc_longlink, void *mg_pack_ptr, int mg_rebuild_type, void *source, void *solution, double *final_residual, double *final_fermilab_residual, int *num_iters);
void qudaMultigridDestroy(void *mg_pack_ptr);
void qudaInvertMsrc(int external_precision, int quda_precision, double mass, QudaInvertArgs_t inv_args, double target_residual, double target_fermilab_residual, const void *fatlink, const void *longlink, void **sourceArray, void **solutionArray, double *final_residual, double *final_fermilab_residual, int *num_iters, int num_src);
void qudaMultishiftInvert(int external_precision, int precision, int num_offsets, double *offset, QudaInvertArgs_t inv_args, const double *target_residual, const double *target_fermilab_residual, const void *milc_fatlink, const void *milc_longlink, void *source, void **solutionArray, double *final_residual, double *final_fermilab_residual, int *num_iters);
void qudaEigCGInvert(int external_precision, int quda_precision, double mass, QudaInvertArgs_t inv_args, double target_residual, double target_fermilab_residual, const void *fatlink, const void *longlink, void *source, void *solution, QudaEigArgs_t eig_args, int rhs_idx, int last_rhs_flag, double *final_residual, double *final_fermilab_residual, int *num_iters);
void qudaCloverInvert(int external_precision, int quda_precision, double kappa, double clover_coeff, QudaInvertArgs_t inv_args, double target_residual, double target_fermilab_residual, const void *milc_link, void *milc_clover, void *milc_clover_inv, void *source, void *solution, double *final_residual, double *final_fermilab_residual, int *num_iters);
void qudaEigCGCloverInvert(int external_precision, int quda_precision, double kappa, double clover_coeff, QudaInvertArgs_t inv_args, double target_residual, double target_fermilab_residual, const void *milc_link, void *milc_clover, void *milc_clover_inv, void *source, void *solution, QudaEigArgs_t eig_args, int rhs_idx, int last_rhs_flag, double *final_residual, double *final_fermilab_residual, int *num_iters);
void qudaLoadGaugeField(int external_precision, int quda_precision, QudaInvertArgs_t inv_args, const void *milc_link);
void qudaFreeGaugeField(void);
void qudaFreeTwoLink(void);
void qudaLoadCloverField(int external_precision, int quda_precision, QudaInvertArgs_t inv_args, void *milc_clover, void *milc_clover_inv, QudaSolutionType solution_type, QudaSolveType solve_type, double clover_coeff, int compute_trlog, double *trlog);
void qudaFreeCloverField(void);
void qudaCloverMultishiftInvert(int external_precision, int quda_precision, int num_offsets, double *offset, double kappa, double clover_coeff, QudaInvertArgs_t inv_args, const double *target_residual, void *source, void **solutionArray, double *final_residual, int *num_iters);
void qudaHisqForce(int precision, int num_terms, int num_naik_terms, double dt, double **coeff, void **quark_field, double *level2_coeff, double *fat7_coeff, const void *w_link, const void *v_link, const void *u_link, void *milc_momentum);
void qudaGaugeForce(int precision, int num_loop_types, double *milc_loop_coeff, double eb3, QudaMILCSiteArg_t *arg);
void qudaGaugeForcePhased(int precision, int num_loop_types, double *milc_loop_coeff, double eb3, QudaMILCSiteArg_t *arg, int phase_in);
void qudaGaugeLoopTracePhased(int precision, double *traces, int **input_path_buf, int *path_length, double *loop_coeff, int num_paths, int max_length, double factor, QudaMILCSiteArg_t *arg, int phase_in);
void qudaPlaquettePhased(int precision, double *plaq, QudaMILCSiteArg_t *arg, int phase_in);
void qudaPolyakovLoopPhased(int precision, double *ploop, int dir, QudaMILCSiteArg_t *arg, int phase_in);
void qudaGaugeMeasurementsPhased(int precision, double *plaq, double *ploop, int dir, double *traces, int **input_path_buf, int *path_length, double *loop_coeff, int num_paths, int max_length, double factor, QudaMILCSiteArg_t *arg, int phase_in);
void qudaUpdateU(int precision, double eps, QudaMILCSiteArg_t *arg);
void qudaUpdateUPhased(int precision, double eps, QudaMILCSiteArg_t *arg, int phase_in);
void qudaUpdateUPhasedPipeline(int precision, double eps, QudaMILCSiteArg_t *arg, int phase_in, int want_gaugepipe);
void qudaMomLoad(int precision, QudaMILCSiteArg_t *arg);
void qudaMomSave(int precision, QudaMILCSiteArg_t *arg);
double qudaMomAction(int precision, QudaMILCSiteArg_t *arg);
void qudaRephase(int prec, void *gauge, int flag, double i_mu);
void qudaUnitarizeSU3(int prec, double tol, QudaMILCSiteArg_t *arg);
void qudaUnitarizeSU3Phased(int prec, double tol, QudaMILCSiteArg_t *arg, int phase_in);
void qudaCloverForce(void *mom, double dt, void **x, void **p, double *coeff, double kappa, double ck, int nvec, double multiplicity, void *gauge, int precision, QudaInvertArgs_t inv_args);
void qudaCloverTrace(void *out, void *dummy, int mu, int nu);
void qudaCloverDerivative(void *out, void *gauge, void *oprod, int mu, int nu, double coeff, int precision, int parity, int conjugate);
void *qudaCreateExtendedGaugeField(void *gauge, int geometry, int precision);
void *qudaResidentExtendedGaugeField(void *gauge, int geometry, int precision);
void *qudaCreateGaugeField(void *gauge, int geometry, int precision);
void qudaSaveGaugeField(void *gauge, void *inGauge);
void qudaDestroyGaugeField(void *gauge);
void qudaGaugeFixingOVR(int precision, unsigned int gauge_dir, int Nsteps, int verbose_interval, double relax_boost, double tolerance, unsigned int reunit_interval, unsigned int stopWtheta, QudaMILCSiteArg_t *arg);
void qudaGaugeFixingFFT(int precision, unsigned int gauge_dir, int Nsteps, int verbose_interval, double alpha, unsigned int autotune, double tolerance, unsigned int stopWtheta, void *milc_sitelink);
void qudaContractFT(int external_precision, QudaContractArgs_t *cont_args, void *quark1, void *quark2, double *corr);
void qudaTwoLinkGaussianSmear(int external_precision, int quda_precision, void *h_gauge, void *source, QudaTwoLinkQuarkSmearArgs_t qsmear_args);
void qudaAsqtadForce(int precision, double *act_path_coeff, const void **one_link_src, const void **naik_src, const void *link, void *milc_momentum);
void qudaComputeOprod(int precision, int num_terms, int num_naik_terms, double **coeff, double scale, void **quark_field, void **oprod);
#ifdef __cplusplus
}
#endif
