// A region's module in the making: the library's functions that it calls, and two generated ones: `prepare`,
// once per invocation, and `region`, per element or row. Uniform values are written here, the rest by derived classes
// of it.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fuse/layout.hpp"
#include "fuse/spirv_library.hpp"

namespace backplane::vulkan {

// What a region's shader is given: an address per operand, the bits of each number, and, with rows, a row's length and
// its lanes; in slots of 8 bytes.
inline size_t slots_of(bp_dtype number) { return number == BP_COMPLEX128 ? 2 : 1; }
inline size_t slots_of(const plugin::FusedProgram& program) {
  size_t slots = program.loads.size() + program.stores.size() + (program.has_rows() ? 1 : 0);
  for (const plugin::FusedNumber& number : program.numbers) slots += slots_of(number.dtype);
  return slots;
}
inline constexpr size_t kPushed = 14;  // slots that the push constants hold; more stand in the table, all of them

class RegionWriter {
 protected:
  struct Value {
    uint32_t id = 0, type = 0;
  };
  // The body of one function.
  struct Body {
    std::vector<uint32_t> variables, code;
  };

  // `row_words`: of all layouts' rows.
  RegionWriter(const plugin::FusedProgram& program, const SpirvLibrary& library, size_t row_words);

  static void put(std::vector<uint32_t>& to, uint32_t opcode, std::initializer_list<uint32_t> words,
                  std::span<const uint32_t> more = {});
  uint32_t new_id() { return bound_++; }
  uint32_t new_variable(Body& body, uint32_t pointer_type);  // of the function; its pointer
  Value loaded(Body& body, uint32_t type, uint32_t pointer);
  Value call(Body& body, const std::string& name, const std::vector<Value>& args);
  Value constant(size_t number);

  Value slot(Body& body, size_t k);
  Value shift_of(bp_dtype dtype);  // log2 of an element's bytes
  // The address of operand k's element at a position of the layout, whose rows begin at word `first`.
  Value reached(Body& body, const Layout& layout, size_t k, Value base, Value position, bp_dtype dtype, size_t first);
  Value load(Body& body, bp_dtype dtype, Value address);

  // `prepare`: loads of uniform values, numbers, results of these, and stores.
  void write_once(const std::vector<size_t>& loads, const std::vector<size_t>& stores);
  Value once(uint32_t variable);   // in `region`: one of these
  std::vector<uint32_t> module();  // with the bodies that have been written

  const plugin::FusedProgram& program_;
  const SpirvLibrary& library_;
  const size_t row_words_;

 private:
  uint32_t bound_;

 protected:
  const uint32_t uint_;
  Body prepare_, region_;
  const Value position_;  // what `region` is called with

 private:
  void need(uint32_t function);
  void write_head(std::vector<uint32_t>& words, const std::set<uint32_t>& rewritten);
  void write_function(std::vector<uint32_t>& words, const SpirvFunction& function, size_t signature, const Body& body);

  std::vector<Value> once_;        // per variable of the program
  std::vector<uint32_t> private_;  // likewise: the module's variable, 0: none
  std::set<uint32_t> needed_;
  std::map<size_t, Value> numbers_;
  std::vector<uint32_t> globals_;
};

}  // namespace backplane::vulkan
