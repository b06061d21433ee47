/* Native formulas of namespace mine. Made by backplane-codegen from wave.yaml; edit that instead. */
#ifndef BACKPLANE_GENERATED_mine_FORMULAS_H
#define BACKPLANE_GENERATED_mine_FORMULAS_H

#include "backplane/abi/host.h"

#endif
