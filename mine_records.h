/* The op records of namespace mine. Made by backplane-codegen from wave.yaml; edit that instead. */
#ifndef BACKPLANE_GENERATED_mine_RECORDS_H
#define BACKPLANE_GENERATED_mine_RECORDS_H

#include "backplane/abi/op.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const bp_op_def* const mine_ops[];
extern const uint32_t mine_op_count;

#ifdef __cplusplus
}
#endif
#endif
