/* Native formulas of namespace mine. Made by backplane-codegen from wave.yaml; edit that instead. */
#include "mine_formulas.h"
