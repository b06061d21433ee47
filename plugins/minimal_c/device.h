/* The device behind the backend, in C: the table of the binary contract. */
#ifndef MINIMAL_DEVICE_H
#define MINIMAL_DEVICE_H

#include "backplane/abi/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Registers the backend `name`. From within register_all alone. */
bp_status minimal_register_device(const bp_host* host, bp_plugin_record* record, const char* name);

#ifdef __cplusplus
}
#endif
#endif
