// Instructions are written in words, as the SPIR-V specification lays them out. Functions take their parameters by
// pointers, as glslang makes them: a call stores its arguments in variables of its own.
#include "fuse/linker.hpp"

#include <bit>
#include <set>

#include "fuse/spirv_library.hpp"

namespace backplane::vulkan {
namespace {

using namespace spirv;

constexpr uint32_t kPlain[] =
#include "region.spv.inc"
    ;
constexpr uint32_t kWithFloat64[] =
#include "region_float64.spv.inc"
    ;
constexpr size_t kRowWords = 96;  // of row_words in shaders/region.comp

const SpirvLibrary& library(bool float64) {
  static const SpirvLibrary plain{SpirvWords(kPlain)};
  static const SpirvLibrary with_float64{SpirvWords(kWithFloat64)};
  return float64 ? with_float64 : plain;
}

void put(std::vector<uint32_t>& to, uint32_t opcode, std::initializer_list<uint32_t> words,
         std::span<const uint32_t> more = {}) {
  to.push_back(static_cast<uint32_t>(words.size() + more.size() + 1) << 16 | opcode);
  to.insert(to.end(), words);
  to.insert(to.end(), more.begin(), more.end());
}
void copy(std::vector<uint32_t>& to, SpirvWords words) { to.insert(to.end(), words.begin(), words.end()); }

struct Value {
  uint32_t id = 0, type = 0;
};

// The body of one function.
struct Body {
  std::vector<uint32_t> variables, code;
};

class Linker {
 public:
  Linker(const plugin::FusedProgram& program, const Layout& layout, const SpirvLibrary& library)
      : program_(program),
        layout_(layout),
        library_(library),
        bound_(library.header()[3]),
        uint_(library.type(kTypeInt, {32, 0})),
        once_(program.uniform.size()),
        each_(program.uniform.size()),
        private_(program.uniform.size(), 0) {}

  std::vector<uint32_t> run() {
    const SpirvFunction &prepare = library_.function("prepare"), &region = library_.function("region");
    need(library_.function("main").id);
    write_prepare();
    const uint32_t parameter = region.words[kFunctionWords + 2];
    put(region_.code, kLoad, {uint_, position_.id = new_id(), parameter});
    position_.type = uint_;
    write_region();
    std::vector<uint32_t> words(library_.header().begin(), library_.header().end());
    write_head(words, {prepare.id, region.id});
    for (const SpirvFunction& function : library_.functions()) {
      if (function.id == prepare.id)
        write_function(words, prepare, kFunctionWords, prepare_);
      else if (function.id == region.id)
        write_function(words, region, kFunctionWords + kParameterWords, region_);
      else if (needed_.contains(function.id))
        copy(words, function.words);
    }
    words[3] = bound_;
    return words;
  }

 private:
  static constexpr size_t kFunctionWords = 5, kParameterWords = 3;
  uint32_t new_id() { return bound_++; }

  void need(uint32_t function) {
    if (!needed_.insert(function).second) return;
    const SpirvFunction& found = library_.function(function);
    if (found.id == library_.function("prepare").id || found.id == library_.function("region").id) return;
    for (const uint32_t called : found.calls) need(called);
  }

  Value call(Body& body, const std::string& name, const std::vector<Value>& args) {
    const SpirvFunction& function = library_.function(name);
    need(function.id);
    std::vector<uint32_t> pointers;
    for (size_t k = 0; k < args.size(); ++k) {
      pointers.push_back(new_id());
      put(body.variables, kVariable, {function.parameter_types[k], pointers.back(), kInFunction});
      put(body.code, kStore, {pointers.back(), args[k].id});
    }
    const Value result{new_id(), function.result_type};
    put(body.code, kFunctionCall, {result.type, result.id, function.id}, pointers);
    return result;
  }

  Value constant(size_t number) {
    const auto [found, fresh] = numbers_.try_emplace(number);
    if (!fresh) return found->second;
    found->second = {new_id(), uint_};
    put(globals_, kConstant, {uint_, found->second.id, static_cast<uint32_t>(number)});
    return found->second;
  }

  // ---- bodies

  size_t operands() const { return layout_.reaches.size(); }

  Value slot(Body& body, size_t k) {
    return call(body, slots_of(program_) > kPushed ? "listed" : "pushed", {constant(k)});
  }
  Value address(Body& body, size_t k, bp_dtype dtype) {
    const Value base = slot(body, k);
    if (layout_.reaches[k] == kOnce) return base;
    const Value shift = constant(static_cast<size_t>(std::bit_width(plugin::kItemSize[dtype]) - 1));
    if (layout_.reaches[k] == kLinear) return call(body, "linear", {base, position_, shift});
    size_t column = Rows::kHead, width = Rows::kHead;
    for (size_t other = 0; other < operands(); ++other) {
      if (layout_.reaches[other] != kStrided) continue;
      column += other < k;
      ++width;
    }
    return call(body, is_near() ? "strided" : "strided_far",
                {base, position_, shift, constant(layout_.rank), constant(width), constant(column)});
  }
  bool is_near() const { return layout_.rows.size() <= kRowWords; }

  void load(Body& body, size_t k, std::vector<Value>& values) {
    const plugin::FusedOperand& operand = program_.loads[k];
    values[operand.variable] =
        call(body, std::string("load_") + plugin::dtype_name(operand.dtype), {address(body, k, operand.dtype)});
  }

  void write_prepare() {
    if (!layout_.rows.empty() && is_near()) call(prepare_, "read_rows", {constant(layout_.rows.size())});
    for (size_t k = 0; k < program_.loads.size(); ++k)
      if (layout_.reaches[k] == kOnce) load(prepare_, k, once_);
    size_t next = operands();
    for (const plugin::FusedNumber& number : program_.numbers) {
      std::vector<Value> bits;
      for (size_t k = 0; k < slots_of(number.dtype); ++k) bits.push_back(slot(prepare_, next++));
      once_[number.variable] = call(prepare_, std::string("number_") + plugin::dtype_name(number.dtype), bits);
    }
    for (const plugin::FusedCall& each : program_.calls) {
      if (!program_.uniform[each.result]) continue;
      std::vector<Value> args;
      for (const uint32_t arg : each.args) args.push_back(once_[arg]);
      once_[each.result] = call(prepare_, each.function, args);
    }
    store(prepare_, true);
  }

  void write_region() {
    for (size_t k = 0; k < program_.loads.size(); ++k)
      if (layout_.reaches[k] != kOnce) load(region_, k, each_);
    for (const plugin::FusedCall& each : program_.calls) {
      if (program_.uniform[each.result]) continue;
      std::vector<Value> args;
      for (const uint32_t arg : each.args) args.push_back(value(arg));
      each_[each.result] = call(region_, each.function, args);
    }
    store(region_, false);
  }

  void store(Body& body, bool once) {
    for (size_t s = 0; s < program_.stores.size(); ++s) {
      const size_t k = program_.loads.size() + s;
      const plugin::FusedOperand& operand = program_.stores[s];
      if (layout_.reaches[k] == kUnused || (layout_.reaches[k] == kOnce) != once) continue;
      call(body, std::string(once ? "store_once_" : "store_") + plugin::dtype_name(operand.dtype),
           {address(body, k, operand.dtype), once ? once_[operand.variable] : value(operand.variable)});
    }
  }

  // In the loop; what is one in all comes through a variable of the module.
  Value value(uint32_t variable) {
    if (!program_.uniform[variable]) return each_[variable];
    const uint32_t type = once_[variable].type;
    if (private_[variable] == 0) {
      const uint32_t pointer = new_id();
      private_[variable] = new_id();
      put(globals_, kTypePointer, {pointer, kPrivate, type});
      put(globals_, kVariable, {pointer, private_[variable], kPrivate});
      put(prepare_.code, kStore, {private_[variable], once_[variable].id});
    }
    const Value read{new_id(), type};
    put(region_.code, kLoad, {type, read.id, private_[variable]});
    return read;
  }

  // ---- the module

  void write_head(std::vector<uint32_t>& words, const std::set<uint32_t>& rewritten) {
    std::vector<bool> dropped(bound_, false);  // by id
    for (const SpirvFunction& function : library_.functions())
      if (!needed_.contains(function.id) || rewritten.contains(function.id))
        for (const uint32_t id : function.defines) dropped[id] = true;
    bool decorated = false;
    for (const SpirvWords instruction : library_.head()) {
      const uint32_t op = instruction[0] & 0xffff;
      if (op >= kFirstType && op <= kTypeFunction && !decorated) {  // decorations stand before the types
        decorated = true;
        for (const auto& [target, decorations] : library_.decorations())
          if (!dropped[target])
            for (const SpirvWords decoration : decorations) copy(words, decoration);
      }
      const size_t at = words.size();
      copy(words, instruction);
      if (op != kEntryPoint) continue;
      for (const uint32_t each : private_)
        if (each != 0) words.push_back(each);  // it names all variables of the module
      words[at] = static_cast<uint32_t>(words.size() - at) << 16 | kEntryPoint;
    }
    copy(words, globals_);
  }
  static constexpr uint32_t kFirstType = 19;

  void write_function(std::vector<uint32_t>& words, const SpirvFunction& function, size_t signature, const Body& body) {
    copy(words, function.words.first(signature));
    put(words, kLabel, {new_id()});
    copy(words, body.variables);
    copy(words, body.code);
    put(words, kReturn, {});
    put(words, kFunctionEnd, {});
  }

  const plugin::FusedProgram& program_;
  const Layout& layout_;
  const SpirvLibrary& library_;
  uint32_t bound_;
  const uint32_t uint_;
  std::vector<Value> once_, each_;  // per variable of the program
  std::vector<uint32_t> private_;   // likewise: the module's variable, 0: none
  Value position_;
  std::set<uint32_t> needed_;
  std::map<size_t, Value> numbers_;
  std::vector<uint32_t> globals_;
  Body prepare_, region_;
};

}  // namespace

std::vector<uint32_t> link_region(const plugin::FusedProgram& program, const Layout& layout, bool float64) {
  return Linker(program, layout, library(float64)).run();
}

}  // namespace backplane::vulkan
