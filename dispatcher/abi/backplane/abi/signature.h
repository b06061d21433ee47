/* Marks of a signature that bind Python's callers alone: flags of a bp_arg_def beside those of op.h. They stand apart
 * because kernels include op.h, and these do not concern them. */
#ifndef BACKPLANE_ABI_SIGNATURE_H
#define BACKPLANE_ABI_SIGNATURE_H

enum {
  BP_ARG_POSITIONAL_ONLY = 1u << 5 /* before `/`: portable callers give it by position */
};

#endif
