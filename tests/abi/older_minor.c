/* Headers that target the first minor have its structs, to the byte: compiling is the test. */
#define BP_TARGET_MINOR 1
#include "backplane/abi/plugin.h"
#include "backplane/abi/signature.h"

#define FIXED(type, size) BP_STATIC_ASSERT(sizeof(type) == (size), #type);
#define OPEN(type, size) BP_STATIC_ASSERT(sizeof(type) == (size), #type " has a member of a later minor");
#define MEMBER(type, member, offset, size) BP_STATIC_ASSERT(offsetof(type, member) == (offset), #type "." #member);
#define VALUE(name, value)
#include "released/layout_0_1.txt"
