// Instructions are 32-bit words, in the layout of the SPIR-V specification. Functions take their parameters by
// pointers, as glslang makes them: a call stores its arguments in variables of its own.
#include "fuse/region_writer.hpp"

#include <bit>

namespace backplane::vulkan {
namespace {

using namespace spirv;

constexpr size_t kRowWords = 96;  // of row_words in shaders/region.glsl
constexpr size_t kFunctionWords = 5, kParameterWords = 3;
constexpr uint32_t kFirstType = 19;

void copy(std::vector<uint32_t>& to, SpirvWords words) { to.insert(to.end(), words.begin(), words.end()); }

}  // namespace

RegionWriter::RegionWriter(const plugin::FusedProgram& program, const SpirvLibrary& library, size_t row_words)
    : program_(program),
      library_(library),
      row_words_(row_words),
      bound_(library.header()[3]),
      uint_(library.type(kTypeInt, {32, 0})),
      position_{new_id(), uint_},
      once_(program.uniform.size()),
      private_(program.uniform.size(), 0) {
  const uint32_t parameter = library.function("region").words[kFunctionWords + 2];
  put(region_.code, kLoad, {uint_, position_.id, parameter});
  need(library.function("main").id);
}

void RegionWriter::put(std::vector<uint32_t>& to, uint32_t opcode, std::initializer_list<uint32_t> words,
                       std::span<const uint32_t> more) {
  to.push_back(static_cast<uint32_t>(words.size() + more.size() + 1) << 16 | opcode);
  to.insert(to.end(), words);
  to.insert(to.end(), more.begin(), more.end());
}

uint32_t RegionWriter::new_variable(Body& body, uint32_t pointer_type) {
  const uint32_t pointer = new_id();
  put(body.variables, kVariable, {pointer_type, pointer, kInFunction});
  return pointer;
}

RegionWriter::Value RegionWriter::loaded(Body& body, uint32_t type, uint32_t pointer) {
  const Value read{new_id(), type};
  put(body.code, kLoad, {type, read.id, pointer});
  return read;
}

void RegionWriter::need(uint32_t function) {
  if (!needed_.insert(function).second) return;
  const SpirvFunction& found = library_.function(function);
  if (found.id == library_.function("prepare").id || found.id == library_.function("region").id) return;
  for (const uint32_t called : found.calls) need(called);
}

RegionWriter::Value RegionWriter::call(Body& body, const std::string& name, const std::vector<Value>& args) {
  const SpirvFunction& function = library_.function(name);
  need(function.id);
  std::vector<uint32_t> pointers;
  for (size_t k = 0; k < args.size(); ++k) {
    pointers.push_back(new_variable(body, function.parameter_types[k]));
    put(body.code, kStore, {pointers.back(), args[k].id});
  }
  const Value result{new_id(), function.result_type};
  put(body.code, kFunctionCall, {result.type, result.id, function.id}, pointers);
  return result;
}

RegionWriter::Value RegionWriter::constant(size_t number) {
  const auto [found, fresh] = numbers_.try_emplace(number);
  if (!fresh) return found->second;
  found->second = {new_id(), uint_};
  put(globals_, kConstant, {uint_, found->second.id, static_cast<uint32_t>(number)});
  return found->second;
}

RegionWriter::Value RegionWriter::slot(Body& body, size_t k) {
  return call(body, slots_of(program_) > kPushed ? "listed" : "pushed", {constant(k)});
}

RegionWriter::Value RegionWriter::shift_of(bp_dtype dtype) {
  return constant(static_cast<size_t>(std::bit_width(plugin::kItemSize[dtype]) - 1));
}

RegionWriter::Value RegionWriter::reached(Body& body, const Layout& layout, size_t k, Value base, Value position,
                                          bp_dtype dtype, size_t first) {
  switch (layout.reaches[k]) {
    case kLinear:
      return call(body, "linear", {base, position, shift_of(dtype)});
    case kPacked:
      return call(body, "packed_row", {base, position, shift_of(dtype)});
    case kStrided: {
      size_t column = Rows::kHead, width = Rows::kHead;
      for (size_t other = 0; other < layout.reaches.size(); ++other) {
        if (layout.reaches[other] != kStrided) continue;
        column += other < k;
        ++width;
      }
      return call(
          body, row_words_ <= kRowWords ? "strided" : "strided_far",
          {base, position, shift_of(dtype), constant(layout.rank), constant(width), constant(column), constant(first)});
    }
    default:
      return base;
  }
}

RegionWriter::Value RegionWriter::load(Body& body, bp_dtype dtype, Value address) {
  return call(body, std::string("load_") + plugin::dtype_name(dtype), {address});
}

void RegionWriter::write_once(const std::vector<size_t>& loads, const std::vector<size_t>& stores) {
  if (row_words_ > 0 && row_words_ <= kRowWords) call(prepare_, "read_rows", {constant(row_words_)});
  for (const size_t k : loads) {
    const plugin::FusedOperand& operand = program_.loads[k];
    once_[operand.variable] = load(prepare_, operand.dtype, slot(prepare_, k));
  }
  size_t next = program_.loads.size() + program_.stores.size();
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
  for (const size_t k : stores) {
    const plugin::FusedOperand& operand = program_.stores[k];
    call(prepare_, std::string("store_once_") + plugin::dtype_name(operand.dtype),
         {slot(prepare_, program_.loads.size() + k), once_[operand.variable]});
  }
}

// It comes through a variable of the module.
RegionWriter::Value RegionWriter::once(uint32_t variable) {
  const uint32_t type = once_[variable].type;
  if (private_[variable] == 0) {
    const uint32_t pointer = new_id();
    private_[variable] = new_id();
    put(globals_, kTypePointer, {pointer, kPrivate, type});
    put(globals_, kVariable, {pointer, private_[variable], kPrivate});
    put(prepare_.code, kStore, {private_[variable], once_[variable].id});
  }
  return loaded(region_, type, private_[variable]);
}

std::vector<uint32_t> RegionWriter::module() {
  const SpirvFunction &prepare = library_.function("prepare"), &region = library_.function("region");
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

void RegionWriter::write_head(std::vector<uint32_t>& words, const std::set<uint32_t>& rewritten) {
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

void RegionWriter::write_function(std::vector<uint32_t>& words, const SpirvFunction& function, size_t signature,
                                  const Body& body) {
  copy(words, function.words.first(signature));
  put(words, kLabel, {new_id()});
  copy(words, body.variables);
  copy(words, body.code);
  put(words, kReturn, {});
  put(words, kFunctionEnd, {});
}

}  // namespace backplane::vulkan
