// Tables of functions that Highway compiles once per instruction set.
#pragma once

namespace backplane::cpu {

// The table for this processor: made by `fill` at the first call, then kept. `fill` is a lambda around
// HWY_DYNAMIC_DISPATCH of the function that HWY_EXPORT names.
template <class Table, class Fill>
const Table& chosen_table(Fill fill) {
  static const Table chosen = [&] {
    Table table{};
    fill(table);
    return table;
  }();
  return chosen;
}

}  // namespace backplane::cpu
