/* The op records of namespace demo. Made by backplane-codegen from golden.yaml; edit that instead. */
#ifndef BACKPLANE_GENERATED_demo_RECORDS_H
#define BACKPLANE_GENERATED_demo_RECORDS_H

#include "backplane/abi/op.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const bp_op_def* const demo_ops[];
extern const uint32_t demo_op_count;

#ifdef __cplusplus
}
#endif
#endif
