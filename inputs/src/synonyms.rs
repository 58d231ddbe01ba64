//! Names that other codes use for keys, tables, values and commands, in one table for each kind. Messages suggest Ferrite's name from these
//! tables if spelling alone does not lead to it. None of these names is accepted as input.

/// Key with its names in other codes.
struct KeySynonym {
    /// Names in lower case with hyphens.
    names: &'static [&'static str],
    /// Last parts of the corresponding keys, the most likely one first. The first key that an input has is suggested.
    keys: &'static [&'static str],
    /// Note that follows the suggestion, or stands alone if no key corresponds.
    note: &'static str,
}

/// Value with its names in other codes.
struct ValueSynonym {
    /// Last parts of the keys that have such values; if empty, the entry applies to every key.
    keys: &'static [&'static str],
    /// Names in lower case with hyphens.
    names: &'static [&'static str],
    /// Corresponding values, the most likely one first.
    values: &'static [&'static str],
    /// Note that follows the suggestion, or stands alone if no value corresponds.
    note: &'static str,
}

/// Creates the entry of a key without a note.
const fn key(names: &'static [&'static str], keys: &'static [&'static str]) -> KeySynonym {
    KeySynonym { names, keys, note: "" }
}
/// Creates the entry of a key with a note.
const fn noted(names: &'static [&'static str], keys: &'static [&'static str], note: &'static str) -> KeySynonym {
    KeySynonym { names, keys, note }
}
/// Creates the entry of a value without a note.
const fn value(
    keys: &'static [&'static str],
    names: &'static [&'static str],
    values: &'static [&'static str],
) -> ValueSynonym {
    ValueSynonym { keys, names, values, note: "" }
}
/// Creates the entry of a value with a note.
const fn explained(
    keys: &'static [&'static str],
    names: &'static [&'static str],
    values: &'static [&'static str],
    note: &'static str,
) -> ValueSynonym {
    ValueSynonym { keys, names, values, note }
}

/// Note on chiral quarks, which no operator implements.
const NO_CHIRAL_QUARKS: &str = "domain-wall, Möbius and overlap quarks are not implemented; `ferrite solve --help` lists the operators with their formulas";

/// Names of keys in QUDA, PyQUDA, MILC, Chroma, openQCD and Grid, and in common use.
static KEYS: &[KeySynonym] = &[
    // Keys of operators.
    key(
        &["dslash-type", "dslash", "dirac", "dirac-op", "dirac-operator", "fermact", "fermion-action", "fermion-type"],
        &["operator"],
    ),
    key(
        &[
            "m",
            "m0",
            "am",
            "mq",
            "ml",
            "ms",
            "m-l",
            "m-s",
            "m-q",
            "quark-mass",
            "bare-mass",
            "mass-l",
            "mass-s",
            "light-mass",
            "strange-mass",
            "dyn-mass",
            "quark-masses",
            "masses",
            "dyn-masses",
        ],
        &["mass"],
    ),
    key(&["hopping", "hopping-parameter", "kap", "k"], &["kappa"]),
    noted(
        &["clover-coeff", "clover-coefficient", "clov-coeff", "clovcoeff", "sw-coeff", "coeff"],
        &["csw"],
        "the value is c_SW itself, without a factor of kappa",
    ),
    key(&["clover-csw", "c-sw", "csw-coeff", "clover", "c-clover"], &["csw"]),
    key(&["clovcoeffr", "clov-coeff-r", "clover-coeff-r", "coeff-r", "csw-r", "csw-s", "clover-s"], &["clover-r"]),
    key(&["clovcoefft", "clov-coeff-t", "clover-coeff-t", "coeff-t", "csw-t"], &["clover-t"]),
    key(&["twisted-mass", "tmu", "mu-q", "amu", "mu-tm", "tm-mu"], &["mu"]),
    key(&["tadpole", "tadpole-coeff", "tadpole-factor", "u-0", "tadpole-u0"], &["u0"]),
    key(&["epsilon", "eps", "eps-naik", "epsilon-naik", "naik", "naik-term-epsilon"], &["naik-epsilon"]),
    noted(
        &[
            "t-boundary",
            "boundary",
            "boundary-condition",
            "boundary-conditions",
            "bc",
            "bc-t",
            "bound-cond",
            "fermion-bc",
            "fermionbc",
            "time-boundary",
            "anti-periodic-t",
            "antiperiodic",
            "anti-periodic",
            "antiperiodic-t",
            "antiperiodict",
        ],
        &["bc-time"],
        "the value is \"antiperiodic\" or \"periodic\"",
    ),
    key(&["twist", "twist-angle", "twist-angles", "theta-x", "boundary-phases"], &["theta"]),
    key(&["xi0", "xi-0", "anisotropy", "aniso", "bare-anisotropy"], &["xi"]),
    key(&["stout", "rho", "rho-stout", "stout-smear", "stout-weight", "stout-alpha"], &["stout-rho"]),
    key(&["n-stout", "nstout", "stout-steps", "stout-smear-steps", "stout-n", "n-rho"], &["stout-levels"]),
    noted(&["ls", "m5", "b5", "c5", "dwf-height", "domain-wall-height"], &[], NO_CHIRAL_QUARKS),
    // Keys of solvers.
    key(
        &[
            "inv-type",
            "invtype",
            "inverter",
            "inverter-type",
            "invert",
            "invert-param",
            "invertparam",
            "inv",
            "solver-type",
            "solvertype",
            "isolv",
            "algorithm",
            "linear-solver",
            "method",
        ],
        &["solver", "method"],
    ),
    key(
        &[
            "tolerance",
            "residual",
            "residuum",
            "resid",
            "res",
            "rsd",
            "rsdcg",
            "rsd-cg",
            "rsd-target",
            "rsdtarget",
            "target-residual",
            "error-per-site",
            "error-for-propagator",
            "error-per-propagator",
            "stopping-criterion",
            "rtol",
            "rel-tol",
            "eps-cg",
            "accuracy",
        ],
        &["tol", "dynamics-tol"],
    ),
    key(
        &[
            "maxiter",
            "maxiters",
            "max-iter",
            "max-iters",
            "max-it",
            "maxit",
            "itermax",
            "niter",
            "n-iter",
            "nmx",
            "maxcg",
            "max-cg",
            "max-cg-iterations",
            "iterations",
            "max-iteration",
            "maxiterations",
        ],
        &["max-iterations"],
    ),
    key(&["reliable-delta", "reliable", "rel-update-delta"], &["delta"]),
    key(
        &["rsdcginner", "rsd-cg-inner", "inner-tolerance", "tol-inner", "inner-residual", "tol-precondition"],
        &["inner-tol"],
    ),
    noted(
        &[
            "prec",
            "prec-sloppy",
            "cuda-prec",
            "cuda-prec-sloppy",
            "sloppy",
            "sloppy-precision",
            "inner-precision",
            "solver-precision",
        ],
        &["precision", "dynamics"],
        "the value is the precision of the iteration; in solves, the key outer sets the precision of the solution",
    ),
    key(&["prec-precise", "outer-precision", "precise-precision", "cuda-prec-refinement-sloppy"], &["outer"]),
    key(
        &["recon", "recon-sloppy", "reconstruction", "reconstruct-sloppy", "cuda-recon", "gauge-recon", "link-recon"],
        &["reconstruct"],
    ),
    key(&["gcrnkrylov", "gcr-n-krylov", "nkv", "nkrylov", "n-krylov", "restart", "restart-length"], &["kmax"]),
    noted(
        &["mg", "multigrid", "amg", "use-mg", "use-multigrid", "mg-param", "multigrid-param"],
        &["solver", "method"],
        "choose multigrid with solver = \"multigrid\", or in a table [[fermion]] with method = \"multigrid\"; keys of \
         multigrid begin with mg-",
    ),
    key(&["n-vec", "nvec", "mg-nvec", "null-vectors", "near-null", "num-vectors", "n-null"], &["mg-vectors"]),
    key(&["n-level", "nlevel", "n-levels", "nlevels", "mg-nlevel", "mg-n-level", "levels"], &["mg-levels"]),
    key(&["geo-block-size", "block-size", "mg-block-size", "blocking", "block", "blocks", "mg-blocks"], &["mg-block"]),
    key(&["nu-post", "mg-nu-post", "smoother-steps", "post-smoothing"], &["mg-smoothing"]),
    key(&["matpc", "matpc-type", "solve-type", "solution-type", "preconditioning"], &["schur"]),
    key(&["hasenbusch", "hasenbusch-masses", "mass-preconditioning", "preconditioning-mass"], &["hasenbusch-mass"]),
    noted(
        &["n-ev", "nev", "deflate", "deflation", "eigcg", "n-conv"],
        &[],
        "eigenvector deflation is not implemented; for light Wilson-like quarks choose multigrid",
    ),
    // Keys of fields and files.
    noted(
        &["nx", "ny", "nz", "nt", "lx", "ly", "lz", "lt", "l0", "l1", "l2", "l3", "ns", "xdim", "tdim"],
        &["lattice"],
        "the value contains all four extents: lattice = [16, 16, 16, 32]",
    ),
    key(
        &[
            "dims",
            "dim",
            "size",
            "latt",
            "latt-size",
            "lattsize",
            "lattice-size",
            "lattice-dim",
            "nrow",
            "extents",
            "lat",
            "volume",
            "vol",
            "geometry",
            "global-size",
            "l",
        ],
        &["lattice"],
    ),
    key(
        &[
            "config",
            "configuration",
            "cfg",
            "conf",
            "gauge-file",
            "gaugefile",
            "gauge-field",
            "cfg-file",
            "lattice-file",
            "links",
            "load-gauge",
            "reload-serial",
            "u",
            "infile",
        ],
        &["gauge", "configurations", "start"],
    ),
    key(&["configs", "configuration-files", "cfgs", "confs", "gauge-files", "cfg-files"], &["configurations", "gauge"]),
    key(&["src", "rhs", "source-type", "b", "eta", "right-hand-side"], &["source"]),
    key(
        &["nsrc", "n-src", "nrhs", "n-rhs", "n-source", "n-sources", "num-sources", "num-src", "multi-rhs"],
        &["sources"],
    ),
    key(&["out", "outfile", "out-file", "output-file", "solution", "x", "prop-file"], &["output", "propagators"]),
    key(&["prop", "props", "propagator", "save-prop", "save-propagators"], &["propagators", "output"]),
    key(&["x0", "initial-guess", "init-guess", "guess-file"], &["guess"]),
    key(&["source-position", "src-pos", "t-srce", "t-source", "position", "source-origin", "source-pos"], &["origin"]),
    key(&["mom2max", "mom2-max", "p2max", "p2-max", "max-mom2", "mom-max", "max-momentum"], &["momenta"]),
    key(&["wvf-param", "smearing-width", "sigma"], &["width"]),
    key(&["wvfintpar", "wvf-int-par", "n-smear", "nsmear", "smearing-steps", "smear-steps"], &["steps"]),
    // Keys of ensembles.
    key(
        &[
            "nf",
            "n-f",
            "flavors",
            "flavour",
            "flavor",
            "n-flavours",
            "n-flavors",
            "nflavours",
            "nflavors",
            "n-flav",
            "nflav",
            "num-flavours",
            "num-flavors",
            "dyn-flavors",
            "n-dyn-flavs",
            "n-quarks",
        ],
        &["flavours"],
    ),
    key(&["n-pseudo", "npf", "n-pf", "n-pseudofermions", "num-pseudofermions", "npseudo"], &["pseudofermions"]),
    key(
        &[
            "trajlen",
            "traj-len",
            "traj-length",
            "trajlength",
            "trajectory-length",
            "tau",
            "tau0",
            "md-time",
            "md-length",
        ],
        &["length", "flow"],
    ),
    key(
        &[
            "nsteps",
            "n-steps",
            "nstep",
            "n-step",
            "num-steps",
            "numbsteps",
            "steps-per-trajectory",
            "md-steps",
            "nmd",
            "n-md",
            "mdsteps",
        ],
        &["steps"],
    ),
    noted(
        &["step-size", "stepsize", "dt", "deltatau", "delta-tau", "microcanonical-time-step", "eps-md"],
        &["steps"],
        "the value is a number of steps, not a step size; the step size of a trajectory is its length / steps",
    ),
    key(
        &[
            "ntraj",
            "n-traj",
            "trajecs",
            "n-trajecs",
            "n-trajectories",
            "ntrajectories",
            "num-trajectories",
            "num-traj",
            "nupdates",
            "nproductionupdates",
            "n-updates",
            "ntr",
        ],
        &["trajectories"],
    ),
    key(
        &[
            "warms",
            "warmup",
            "warm-up",
            "therm",
            "ntherm",
            "n-therm",
            "thermalisation",
            "thermalization",
            "thermalize",
            "nwarmupupdates",
            "nth",
        ],
        &["thermalise"],
    ),
    key(&["iseed", "random-seed", "rng-seed", "seeds", "rng"], &["seed"]),
    key(
        &[
            "save-interval",
            "saveinterval",
            "save-freq",
            "save-frequency",
            "save",
            "checkpoint",
            "checkpoint-interval",
            "checkpoint-every",
            "dtr-cnfg",
        ],
        &["save-every"],
    ),
    key(&["start-file", "startfile", "start-config", "start-cfg", "start-type", "init", "initial"], &["start"]),
    key(&["integrator-type", "md-integrator", "mdintegrator", "scheme", "int-type"], &["integrator"]),
    key(&["flow-time", "flowtime", "t-flow", "tmax", "t-max", "wflow"], &["flow"]),
    key(&["gauge-action", "gaugeact", "gauge-act", "action-type", "gauge-type"], &["action"]),
    key(&["beta-gauge", "coupling", "gauge-coupling"], &["beta"]),
    noted(
        &["c0", "c1", "c-0", "c-1", "c-p", "c-r"],
        &[],
        "gauge.action sets the coefficients of plaquettes and rectangles; gauge.plaquette and gauge.rectangle replace \
         them, in the normalisation of docs/rhmc.md",
    ),
    // Keys of devices and processes.
    key(&["gpu", "gpus", "gpu-id", "gpuid", "device-id", "cuda-device", "resource-path"], &["device"]),
    key(&["nthreads", "n-threads", "num-threads", "numthreads", "omp-num-threads", "cores", "cpus"], &["threads"]),
    key(
        &[
            "mpi",
            "procs",
            "processes",
            "process-grid",
            "processor-grid",
            "node-geometry",
            "grid-size",
            "gridsize",
            "mpi-grid",
            "mpi-layout",
            "geom",
            "nodes",
        ],
        &["grid"],
    ),
    noted(
        &["verbosity", "verbose", "loglevel", "log-level", "quiet", "debug"],
        &[],
        "on the command line, -v prints more and -q prints less",
    ),
];

/// Names of tables in other codes. Each list comes with the tables of Ferrite that its names may mean.
static TABLES: &[(&[&str], &[&str])] = &[
    (
        &[
            "fermions",
            "fermion-action",
            "quark",
            "quarks",
            "pseudofermion",
            "pseudofermions",
            "flavour",
            "flavours",
            "flavor",
            "flavors",
            "monomial",
            "monomials",
        ],
        &["fermion", "quark"],
    ),
    (
        &[
            "solver",
            "solvers",
            "inverter",
            "invert",
            "inversion",
            "dirac",
            "propagator",
            "linear-solver",
            "invertparam",
        ],
        &["solve"],
    ),
    (
        &["integrator", "md", "hmc", "rhmc", "molecular-dynamics", "mdintegrator", "trajectories", "traj"],
        &["trajectory"],
    ),
    (&["action", "gauge-action", "gaugeaction", "gauge-field"], &["gauge"]),
    (&["measurement", "measurements", "observable", "observables", "meas"], &["measure"]),
    (&["smearing", "smear", "source-smearing", "gaussian", "shells"], &["shell"]),
    (&["precisions", "solver", "solvers"], &["precision"]),
    (&["threepoint", "three-points", "3pt", "formfactor", "form-factor", "sequential"], &["three-point"]),
];

const PRECISION: &[&str] =
    &["precision", "outer", "mg-precision", "domain-precision", "links", "gauge-force", "dynamics", "action"];
const SOLVER: &[&str] = &["solver", "method"];

/// Names of values in other codes and in common use.
static VALUES: &[ValueSynonym] = &[
    explained(
        SOLVER,
        &["gcr", "gmres", "fgmres", "fgcr", "gcrodr", "gmres-dr", "gmresdr"],
        &["gcr-dd", "multigrid"],
        "GCR is the outer solver of gcr-dd and of multigrid",
    ),
    value(SOLVER, &["sap", "sap-gcr", "schwarz", "gcrdd", "dd-gcr", "dd"], &["gcr-dd"]),
    value(
        SOLVER,
        &[
            "mg",
            "amg",
            "multi-grid",
            "dd-alpha-amg",
            "ddalphaamg",
            "dfl-sap-gcr",
            "quda-multigrid",
            "quda-multigrid-clover",
            "mgproto",
        ],
        &["multigrid"],
    ),
    value(
        SOLVER,
        &[
            "bicg",
            "bi-cgstab",
            "bicg-stab",
            "bicgstab2",
            "bicgstab-l",
            "bicgstabl",
            "ibicgstab",
            "reliable-bicgstab",
            "reliable-ibicgstab",
            "bicgstab-inverter",
        ],
        &["bicgstab"],
    ),
    value(
        SOLVER,
        &["cgnr", "cgn", "pcg", "conjugate-gradient", "conjugate-gradients", "cg-inverter", "reliable-cg", "mcg"],
        &["cg"],
    ),
    value(SOLVER, &["cg-ne"], &["cgne", "cg"]),
    value(SOLVER, &["blockcg", "bcg", "block", "bcgrq", "blockcgrq"], &["block-cg"]),
    explained(
        &["solver"],
        &["mscg", "multi-cg", "multicg", "multi-shift", "multishift", "multi-shift-cg"],
        &[],
        "for several masses or shifts of a staggered operator, `ferrite solve` uses multi-shift CG by default: give masses or \
         shifts, and remove solver",
    ),
    value(
        &["operator"],
        &["clover-wilson", "wilson-clover", "sw", "sheikholeslami-wohlert", "cloverwilson"],
        &["clover"],
    ),
    value(
        &["operator"],
        &["exp", "expclover", "exponential-clover", "exponentiated-clover", "stabilised-wilson"],
        &["exp-clover"],
    ),
    value(&["operator"], &["tm", "twisted-mass", "twistedmass", "wilson-tm", "tmwilson", "tmqcd"], &["twisted"]),
    value(
        &["operator"],
        &["tm-clover", "tmclover", "twisted-mass-clover", "twistedclover", "clover-twisted", "clover-tm"],
        &["twisted-clover"],
    ),
    value(
        &["operator"],
        &["ks", "kogut-susskind", "naive", "staggered", "unimproved-staggered"],
        &["staggered", "naive"],
    ),
    explained(
        &["operator"],
        &[
            "dwf",
            "dw",
            "domain-wall",
            "domainwall",
            "domain-wall-4d",
            "dwf4d",
            "mdwf",
            "mobius",
            "moebius",
            "möbius",
            "zmobius",
            "shamir",
            "overlap",
            "ov",
            "neuberger",
        ],
        &[],
        NO_CHIRAL_QUARKS,
    ),
    explained(
        &["action"],
        &["symanzik"],
        &[],
        "\"symanzik\" has been renamed \"luscher-weisz\", Symanzik's action to one loop; \"symanzik-tree\" is the \
         action at tree level",
    ),
    value(&["action"], &["plaquette", "plaq", "wilson-gauge", "wilson-plaquette"], &["wilson"]),
    value(
        &["action"],
        &[
            "tree",
            "tree-level",
            "tlsym",
            "lw-tree",
            "tree-symanzik",
            "tree-level-symanzik",
            "symanzik-tree-level",
            "treelevel-symanzik",
        ],
        &["symanzik-tree"],
    ),
    value(
        &["action"],
        &[
            "lw",
            "one-loop",
            "1-loop",
            "one-loop-symanzik",
            "symanzik-one-loop",
            "symanzik-1loop",
            "luescher-weisz",
            "lüscher-weisz",
        ],
        &["luscher-weisz"],
    ),
    explained(
        &["integrator", "gauge-integrator"],
        &["omf4", "4mn4fp", "4mn5fp", "4mn5fv", "omelyan4", "omelyan-4", "mn4", "minimum-norm-4"],
        &["force-gradient"],
        "OMF4 is not implemented; force-gradient is also of fourth order",
    ),
    value(
        &["integrator", "gauge-integrator"],
        &["omf2", "2mn", "mn2", "mn", "minimum-norm", "minimum-norm-2", "omelyan2", "omelyan-2", "2mnsts"],
        &["omelyan"],
    ),
    value(
        &["integrator", "gauge-integrator"],
        &["lf", "lpfr", "leap-frog", "verlet", "stoermer-verlet", "velocity-verlet"],
        &["leapfrog"],
    ),
    value(
        &["integrator", "gauge-integrator"],
        &["fg", "fgi", "hessian-free", "fgrad", "forcegradient"],
        &["force-gradient"],
    ),
    value(PRECISION, &["float", "f32", "fp32", "float32", "sp", "32", "s", "32-bit"], &["single"]),
    value(PRECISION, &["f64", "fp64", "float64", "dp", "64", "d", "64-bit", "full"], &["double"]),
    value(PRECISION, &["h", "16", "16-bit", "int16", "quarter", "8", "8-bit", "int8"], &["half"]),
    value(PRECISION, &["f16", "float16"], &["fp16", "half"]),
    explained(
        &["precision"],
        &["mixed", "mixed-precision"],
        &["half", "single"],
        "half and single give a solve in mixed precision, with true residuals in double",
    ),
    value(&["bc-time"], &["anti-periodic", "antip", "ap", "anti", "-1", "a", "antiperiodict"], &["antiperiodic"]),
    value(&["bc-time"], &["p", "1", "per"], &["periodic"]),
    explained(
        &["bc-time"],
        &["open", "sf", "dirichlet", "schroedinger", "schrodinger-functional"],
        &[],
        "open and Schroedinger functional boundary conditions are not implemented",
    ),
    value(&["reconstruct"], &["none", "no", "full", "3x3"], &["18"]),
    value(
        &["source", "sink"],
        &["smeared", "gaussian", "gauss", "wuppertal", "jacobi", "smear", "shell-source", "wave"],
        &["shell"],
    ),
    value(
        &["source"],
        &[
            "stochastic",
            "z2",
            "z3",
            "z4",
            "u1",
            "zn",
            "random",
            "noise-wall",
            "z2-wall",
            "stochastic-wall",
            "random-wall",
            "volume",
        ],
        &["noise"],
    ),
    value(&["sink"], &["local"], &["point"]),
    value(&["hadron"], &["proton", "neutron", "baryon"], &["nucleon"]),
    value(&["hadron"], &["pion", "kaon"], &["meson"]),
    value(&["backend"], &["gpu", "nvidia", "cuda-gpu", "device"], &["cuda"]),
    value(&["backend"], &["host", "openmp", "omp", "threads"], &["cpu"]),
    explained(&["backend"], &["hip", "rocm", "amd", "sycl", "opencl", "metal"], &[], "only NVIDIA GPUs are supported"),
    value(&["schur"], &["sym", "even-even"], &["symmetric"]),
    value(&["schur"], &["asym", "even-even-asymmetric"], &["asymmetric"]),
    value(&["correction"], &["reliable-update", "reliable-updates"], &["reliable"]),
    value(&["correction"], &["defect-correction", "refinement", "iterative-refinement"], &["defect"]),
    value(&[], &["yes", "y", "true", "1", "enabled", "on"], &["true", "on"]),
    value(&[], &["no", "n", "false", "0", "disabled", "off"], &["false", "off"]),
];

/// Names of commands in other programs and in common use, with a sentence on Ferrite's corresponding command.
static COMMANDS: &[(&[&str], &str)] = &[
    (
        &["flow", "gradient-flow", "gradientflow", "wilson-flow", "wilsonflow", "wflow"],
        "`ferrite measure FILE --flow 2` computes the gradient flow up to the flow time 2",
    ),
    (
        &["topcharge", "topological-charge", "charge", "topology"],
        "`ferrite measure FILE --flow 2` measures the topological charge along the gradient flow up to the flow time 2",
    ),
    (
        &["polyakov", "polyakov-loop", "wilson-loop", "wilson-loops", "loops", "wloop", "rectangle", "potential"],
        "`ferrite measure FILE` measures plaquettes, rectangles and Polyakov loops; add --loops R,T for Wilson loops",
    ),
    (&["plaq", "plaquettes"], "did you mean 'ferrite plaquette FILE'?"),
    (
        &["run", "start", "exec", "execute"],
        "name the command that reads the input: ferrite solve, rhmc or spectrum; `ferrite check FILE` determines which",
    ),
    (
        &["propagator", "propagators", "prop", "make-propagator", "inverter"],
        "a propagator consists of the solutions for all components of a point source: ferrite solve FILE --mass M --source point:0,0,0,0 --sources 12 -o prop.npy",
    ),
    (
        &["correlator", "correlators", "meson", "mesons", "hadspec", "hadrons", "pion", "twopt", "2pt", "baryons"],
        "`ferrite spectrum` computes correlators of hadrons; `ferrite init spectrum` prints an example of its input",
    ),
    (
        &["dslash", "dirac", "operator"],
        "`ferrite apply` applies an operator to a field, and `ferrite bench dslash` times it",
    ),
    (
        &["eig", "eigs", "eigen", "eigenvalue", "eigensolve", "eigenvectors", "lanczos", "spectral"],
        "did you mean 'ferrite eigenvalues FILE --mass 0.1'? That command finds the smallest and the largest eigenvalue of M^+ M",
    ),
    (&["benchmark", "benchmarks", "perf"], "did you mean 'ferrite bench'?"),
    (&["autotune", "tuning"], "did you mean 'ferrite tune'?"),
    (&["gauge-fix", "gaugefix", "fixgauge", "landau", "coulomb", "gauge-fixing"], "did you mean 'ferrite fix-gauge'?"),
    (
        &["stout", "ape", "hyp", "smearing", "smear-links"],
        "did you mean 'ferrite smear'? `ferrite smear --help` has examples",
    ),
    (
        &["quenched", "heatbath", "heat-bath", "pure-gauge", "puregauge", "overrelax", "weak-field", "unit", "random"],
        "`ferrite generate` makes configurations; `ferrite generate --help` has examples",
    ),
    (
        &["hisq", "asqtad", "fatlinks", "fat-links", "fat"],
        "`ferrite links hisq` and `ferrite links asqtad` make fat and long links",
    ),
    (
        &["validate", "lint", "dry-run", "test"],
        "`ferrite check` checks inputs without running them, and `ferrite verify` checks fields",
    ),
    (
        &["read", "inspect", "show", "cat", "header", "checksum", "crc"],
        "`ferrite verify FILE` checks a file completely and describes what it contains",
    ),
    (
        &["new", "config", "template", "example", "examples", "input"],
        "did you mean 'ferrite init'? `ferrite init solve` prints an input with comments",
    ),
    (&["devices", "gpus", "gpu", "status", "env", "about"], "did you mean 'ferrite info'?"),
    (&["version"], "did you mean 'ferrite --version'?"),
    (&["plot", "html", "web"], "`ferrite report` draws plots on an HTML page"),
    (&["average", "jackknife", "analyse", "analyze", "analysis", "effmass"], "did you mean 'ferrite fit'?"),
    (&["remez", "zolotarev", "approximation"], "did you mean 'ferrite rational'?"),
    (&["force"], "did you mean 'ferrite forces'?"),
    (&["completion", "complete"], "did you mean 'ferrite completions'?"),
    (&["manual", "manpage", "pages"], "did you mean 'ferrite man'?"),
];

/// Returns a name in the form used in the tables: in lower case, with hyphens.
fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', ' '], "-")
}

/// Returns the last part of a key: `steps` of `trajectory.steps`.
fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Suggestion for an unknown name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meant {
    /// Name that Ferrite has; `None` if only the note applies.
    pub name: Option<String>,
    /// Note that follows the name or replaces it.
    pub note: Option<&'static str>,
    /// Whether the value as typed has the same meaning under `name`.
    pub sure: bool,
}

impl Meant {
    fn new(name: Option<&str>, note: &'static str) -> Self {
        Meant { name: name.map(String::from), note: (!note.is_empty()).then_some(note), sure: note.is_empty() }
    }
    /// Returns the end of a message that suggests the name, the note or both: `; did you mean 'csw'? The value is c_SW itself`.
    pub fn sentence(&self) -> String {
        match (&self.name, self.note) {
            (Some(name), None) => format!("; did you mean '{name}'?"),
            (Some(name), Some(note)) => format!("; did you mean '{name}'? {}", capitalised(note)),
            (None, Some(note)) => format!("; {note}"),
            (None, None) => String::new(),
        }
    }
}

/// Returns a note as a separate sentence.
fn capitalised(note: &str) -> String {
    let mut letters = note.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the key among the patterns `known` that corresponds to a name of another code. Among several keys with the
/// same last part, the one in the same table is preferred.
pub fn of_key(typed: &str, known: &[&str]) -> Option<Meant> {
    let name = plain(last(typed));
    let table = typed.rsplit_once('.').map_or("", |(table, _)| table);
    let of = |wanted: &str| {
        let fits = || known.iter().copied().filter(|key| last(key) == wanted);
        let same = |key: &&str| key.rsplit_once('.').map_or("", |(table, _)| table) == table;
        fits().find(same).or_else(|| fits().next())
    };
    let entries = KEYS.iter().filter(|entry| entry.names.contains(&name.as_str()));
    let mut all = entries.map(|entry| (entry.keys.iter().find_map(|key| of(key)), entry));
    // An entry that names no key of Ferrite has a note that explains why.
    all.find(|(key, entry)| key.is_some() || entry.keys.is_empty()).map(|(key, entry)| Meant::new(key, entry.note))
}

/// Returns the table of `known` that corresponds to a name of another code.
pub fn of_table<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let name = plain(typed);
    let entries = TABLES.iter().filter(|(names, _)| names.contains(&name.as_str()));
    entries.flat_map(|(_, tables)| tables.iter()).find_map(|table| known.iter().copied().find(|known| known == table))
}

/// Returns the element of `choices` to which an unknown value of a key probably corresponds.
pub fn of_value(key: &str, typed: &str, choices: &[&str]) -> Option<Meant> {
    let (name, key) = (plain(typed), last(key));
    if let Some(same) = choices.iter().find(|choice| plain(choice) == name) {
        return Some(Meant::new(Some(same), ""));
    }
    let fits = |entry: &&ValueSynonym| {
        entry.names.contains(&name.as_str()) && (entry.keys.is_empty() || entry.keys.contains(&key))
    };
    let mut all = VALUES.iter().filter(fits).map(|entry| {
        let value = entry.values.iter().copied().find(|value| choices.contains(value));
        (value, entry)
    });
    let found = all.find(|(value, entry)| value.is_some() || entry.values.is_empty());
    found.map(|(value, entry)| Meant::new(value, entry.note)).or_else(|| {
        let close = |choice: &str| strsim::jaro_winkler(choice, &name);
        let best = choices.iter().copied().max_by(|a, b| close(a).total_cmp(&close(b)))?;
        (close(best) > 0.8).then(|| Meant::new(Some(best), ""))
    })
}

/// Returns the message that the value `text` is none of `choices`. The message suggests the choice that was probably meant.
pub fn none_of(key: &str, text: &str, choices: &[&str]) -> String {
    let hint = of_value(key, text, choices).map(|meant| meant.sentence()).unwrap_or_default();
    format!("'{text}' is none of {}{hint}", choices.join(", "))
}

/// Returns advice on a command of another program: a sentence that names the command of Ferrite for the same work.
pub fn of_command(typed: &str) -> Option<&'static str> {
    let name = plain(typed);
    COMMANDS.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(_, sentence)| *sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every name can be found: it is written in the form that is compared, and no earlier entry hides it.
    #[test]
    fn names_are_plain_and_there_once() {
        fn twice<'a>(names: Vec<(&'a str, &'a str)>) -> Vec<(&'a str, &'a str)> {
            let mut seen = BTreeSet::new();
            names.into_iter().filter(|one| !seen.insert(*one)).collect()
        }
        let all = |lists: Vec<&'static [&'static str]>| lists.concat();
        let keys = all(KEYS.iter().map(|entry| entry.names).collect());
        let commands = all(COMMANDS.iter().map(|(names, _)| *names).collect());
        let values: Vec<(&str, &str)> = VALUES
            .iter()
            .flat_map(|entry| {
                let keys = if entry.keys.is_empty() { &[""][..] } else { entry.keys };
                keys.iter().flat_map(|key| entry.names.iter().map(|name| (*key, *name)))
            })
            .collect();
        for name in keys.iter().chain(&commands).chain(values.iter().map(|(_, name)| name)) {
            assert_eq!(*name, plain(name));
        }
        assert_eq!(twice(keys.iter().map(|name| ("", *name)).collect()), []);
        assert_eq!(twice(commands.iter().map(|name| ("", *name)).collect()), []);
        assert_eq!(twice(values), []);
    }

    #[test]
    fn the_same_table_comes_first() {
        let known = ["solver", "trajectory.steps", "shell.steps", "fermion.*.csw"];
        let name = |typed| of_key(typed, &known).and_then(|meant| meant.name);
        assert_eq!(name("shell.nsteps").as_deref(), Some("shell.steps"));
        assert_eq!(name("NSteps").as_deref(), Some("trajectory.steps"));
        assert_eq!(name("fermion.*.clover_csw").as_deref(), Some("fermion.*.csw"));
        assert_eq!(name("csw_of_nothing"), None);
        assert_eq!(of_table("Fermions", &["gauge", "fermion"]), Some("fermion"));
        assert_eq!(of_table("solver", &["gauge", "precision"]), Some("precision"));
        assert_eq!(of_table("solver", &["solve", "quark"]), Some("solve"));
    }

    #[test]
    fn values_are_of_their_key() {
        let solvers = ["auto", "cg", "gcr-dd", "multigrid"];
        let name = |key, typed, choices: &[&str]| of_value(key, typed, choices).and_then(|meant| meant.name);
        assert_eq!(name("solver", "GMRES", &solvers).as_deref(), Some("gcr-dd"));
        assert_eq!(name("fermion.0.method", "mg", &["cg", "multigrid"]).as_deref(), Some("multigrid"));
        assert_eq!(name("operator", "mg", &["wilson", "clover"]), None);
        assert_eq!(name("operator", "Clover", &["wilson", "clover"]).as_deref(), Some("clover"));
        // Retired: no single name corresponds to it.
        let symanzik = of_value("gauge.action", "symanzik", &["wilson", "symanzik-tree", "luscher-weisz"]).unwrap();
        assert!(symanzik.name.is_none() && symanzik.sentence().contains("renamed \"luscher-weisz\""));
    }
}
