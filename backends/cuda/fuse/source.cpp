// A kernel's text: uniform values first, then a loop over positions: loads, a call per node and element, stores.
// See source.hpp.
#include "fuse/source.hpp"

#include <cstring>

#include "kernels/call.hpp"

namespace backplane::cuda {
namespace {

// As the device's headers name them.
const char* stored_type(bp_dtype dtype) {
  static constexpr const char* kNames[] = {"bool",     "int8_t",   "int16_t",  "int32_t",   "int64_t",
                                           "uint8_t",  "uint16_t", "uint32_t", "uint64_t",  "float16",
                                           "bfloat16", "float",    "double",   "complex64", "complex128"};
  return kNames[dtype];
}

// Where the members of Arguments lie, in the order in which they stand there.
struct Members {
  size_t operands, numbers, strided, rank;
  Members(const plugin::FusedProgram& program, const Layout& layout)
      : operands(layout.reaches.size()),
        numbers(program.numbers.size()),
        strided(layout.strided()),
        rank(layout.rank()) {}
  size_t data() const { return sizeof(uint64_t); }  // behind the count of positions
  size_t numbers_at() const { return data() + operands * sizeof(char*); }
  size_t strides() const { return numbers_at() + numbers * sizeof(Number); }
  size_t sizes() const { return strides() + strided * rank * sizeof(int64_t); }
  size_t bytes() const { return (sizes() + rank * sizeof(Divider) + 7) / 8 * 8; }
};

std::string subscript(size_t n) { return "[" + std::to_string(n) + "]"; }

class Printer {
 public:
  Printer(const plugin::FusedProgram& program, const Layout& layout)
      : program_(program), layout_(layout), members_(program, layout), width_(std::to_string(layout.width)) {}

  std::string run() {
    text_ = "#include \"fuse/region.cuh\"\n\nusing namespace backplane::cuda;\n\n";
    print_arguments();
    const bool direct = members_.bytes() <= kMostParameterBytes;
    text_ += std::string("extern \"C\" __global__ void ") + kRegionKernel;
    text_ += direct ? "(const __grid_constant__ Arguments a) {\n"
                    : "(const Arguments* table) {\n  const Arguments& a = *table;\n";
    print_once();
    print_loop();
    return text_ + "}\n";
  }

 private:
  void line(const std::string& code) { text_ += "  " + code + "\n"; }

  void print_arguments() {
    text_ += "struct Arguments {\n";
    line("uint64_t positions;");
    line("char* data" + subscript(members_.operands) + ";");
    if (members_.numbers > 0) line("Number numbers" + subscript(members_.numbers) + ";");
    if (members_.strided > 0) {
      line("int64_t strides" + subscript(members_.strided) + subscript(members_.rank) + ";");
      line("Divider sizes" + subscript(members_.rank) + ";");
    }
    text_ += "};\n\n";
  }

  // ---- variables of the program are v0, v1, …; packs of operands are p0, p1, …

  static std::string variable(uint32_t number) { return "v" + std::to_string(number); }
  std::string address(size_t k) const {
    const std::string base = "a.data" + subscript(k);
    switch (layout_.reaches[k]) {
      case kLinear:
        return base + " + i * sizeof(" + pack(k) + ")";
      case kStrided:
      case kRepeated: {
        size_t row = 0;
        for (size_t other = 0; other < k; ++other)
          row += layout_.reaches[other] == kStrided || layout_.reaches[other] == kRepeated;
        return base + " + at" + subscript(row);
      }
      default:
        return base;
    }
  }
  const plugin::FusedOperand& operand(size_t k) const {
    return k < program_.loads.size() ? program_.loads[k] : program_.stores[k - program_.loads.size()];
  }
  std::string type(size_t k) const { return stored_type(operand(k).dtype); }
  std::string pack(size_t k) const {
    return layout_.reaches[k] == kRepeated ? type(k) : "Pack<" + type(k) + ", " + width_ + ">";
  }

  std::string call(const plugin::FusedCall& each) const {
    std::string args;
    for (const uint32_t arg : each.args) args += (args.empty() ? "" : ", ") + variable(arg);
    return "const auto " + variable(each.result) + " = " + each.function + "(" + args + ");";
  }

  void print_once() {
    for (size_t n = 0; n < program_.numbers.size(); ++n)
      line("const auto " + variable(program_.numbers[n].variable) + " = load<" +
           stored_type(program_.numbers[n].dtype) + ">(reinterpret_cast<const char*>(a.numbers" + subscript(n) +
           ".bytes));");
    for (size_t k = 0; k < program_.loads.size(); ++k)
      if (layout_.reaches[k] == kOnce)
        line("const auto " + variable(operand(k).variable) + " = widen(load<" + type(k) + ">(" + address(k) + "));");
    for (const plugin::FusedCall& each : program_.calls)
      if (program_.uniform[each.result]) line(call(each));
    for (size_t k = program_.loads.size(); k < layout_.reaches.size(); ++k)
      if (layout_.reaches[k] == kOnce)
        line("if (first_index() == 0) store(" + address(k) + ", narrow<" + type(k) + ">(" +
             variable(operand(k).variable) + "));");
  }

  void print_loop() {
    const size_t loads = program_.loads.size(), all = layout_.reaches.size();
    const auto in_loop = [&](size_t k) { return layout_.reaches[k] != kOnce && layout_.reaches[k] != kUnused; };
    line("for (uint32_t i = first_index(); i < a.positions; i += index_step()) {");
    if (members_.strided > 0) {
      line("  int64_t at" + subscript(members_.strided) + ";");
      line("  place(a.sizes, a.strides, i * " + width_ + ", at);");
    }
    for (size_t k = 0; k < loads; ++k)
      if (in_loop(k)) line("  const auto p" + std::to_string(k) + " = load<" + pack(k) + ">(" + address(k) + ");");
    for (size_t k = loads; k < all; ++k)
      if (in_loop(k)) line("  " + pack(k) + " p" + std::to_string(k) + ";");
    text_ += "#pragma unroll\n";
    line("  for (int k = 0; k < " + width_ + "; ++k) {");
    for (size_t k = 0; k < loads; ++k)
      if (in_loop(k))
        line("    const auto " + variable(operand(k).variable) + " = widen(p" + std::to_string(k) +
             (layout_.reaches[k] == kRepeated ? ");" : ".at[k]);"));
    for (const plugin::FusedCall& each : program_.calls)
      if (!program_.uniform[each.result]) line("    " + call(each));
    for (size_t k = loads; k < all; ++k)
      if (in_loop(k))
        line("    p" + std::to_string(k) + ".at[k] = narrow<" + type(k) + ">(" + variable(operand(k).variable) + ");");
    line("  }");
    for (size_t k = loads; k < all; ++k)
      if (in_loop(k)) line("  store(" + address(k) + ", p" + std::to_string(k) + ");");
    line("}");
  }

  const plugin::FusedProgram& program_;
  const Layout& layout_;
  const Members members_;
  const std::string width_;
  std::string text_;
};

template <class T>
void put(std::vector<std::byte>& bytes, size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

}  // namespace

std::string print_region(const plugin::FusedProgram& program, const Layout& layout) {
  return Printer(program, layout).run();
}

std::vector<std::byte> region_arguments(const plugin::FusedProgram& program, const Layout& layout,
                                        const std::vector<char*>& data) {
  const Members members(program, layout);
  std::vector<std::byte> bytes(members.bytes());
  put(bytes, 0, static_cast<uint64_t>(layout.count()) / layout.width);
  for (size_t k = 0; k < data.size(); ++k) put(bytes, members.data() + k * sizeof(char*), data[k]);
  for (size_t n = 0; n < program.numbers.size(); ++n) {
    Number number{};
    std::memcpy(number.bytes, program.numbers[n].bytes, sizeof(number.bytes));
    put(bytes, members.numbers_at() + n * sizeof(Number), number);
  }
  size_t at = members.strides();
  for (size_t k = 0; k < layout.reaches.size(); ++k) {
    if (layout.reaches[k] != kStrided && layout.reaches[k] != kRepeated) continue;
    for (const plugin::FusedAxis& axis : layout.axes) put(bytes, at, axis.strides[k]), at += sizeof(int64_t);
  }
  for (size_t d = 0; d < members.rank; ++d) put(bytes, at, divider(layout.axes[d].size)), at += sizeof(Divider);
  return bytes;
}

}  // namespace backplane::cuda
