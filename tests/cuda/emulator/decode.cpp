// A function's text as instructions; see program.hpp.
//
// What an instruction may name beside registers (special registers, parameters, variables) is put into registers of the
// interpreter's own by instructions in front of the function. Register 0 belongs to nobody.
#include <algorithm>

#include "lanes.hpp"
#include "special.hpp"
#include "text.hpp"

namespace emulator {
namespace {

constexpr int kInvalidPtx = 218;

// {a, b, ...} or a.
std::vector<std::string_view> listed(std::string_view text) {
  return text.front() == '{' ? split(text.substr(1, text.size() - 2), ',') : std::vector<std::string_view>{text};
}

class Decoder {
 public:
  Decoder(Module& module, Function& function) : module_(module), function_(function), line_(function.line) {}
  void run();

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Fault(kInvalidPtx, "PTX, line " + std::to_string(line_) + ", in " + function_.name + ": " + what);
  }
  void statement(std::string_view text);
  void declare(std::string_view text);
  void instruction(std::string_view text);
  void memory(Instruction& made, const std::vector<std::string_view>& words,
              const std::vector<std::string_view>& operands);
  void asynchronous_copy(Instruction& made, const std::vector<std::string_view>& words,
                         const std::vector<std::string_view>& operands);
  void matrices(Instruction& made, const std::vector<std::string_view>& words,
                const std::vector<std::string_view>& operands);
  void call(Instruction& made, std::string_view operands);
  void plain(Instruction& made, std::vector<std::string_view> words, const std::vector<std::string_view>& operands);

  uint32_t reg(std::string_view name);
  Source source(std::string_view text);
  Source immediate(uint64_t bits);
  uint32_t prepared(const std::string& key, Handler handler, int64_t offset);
  void address(Instruction& made, std::string_view text);
  const Parameter* local(std::string_view name) const;
  uint32_t reserve(uint32_t& bytes, const Declaration& declared);

  Module& module_;
  Function& function_;
  uint32_t line_;
  uint32_t registers_ = 1;
  std::vector<std::map<std::string, uint32_t, std::less<>>> scopes_{1};
  std::map<std::string, uint32_t, std::less<>> prepared_;
  std::map<std::string, Parameter, std::less<>> locals_;
  std::map<std::string, uint32_t, std::less<>> shared_, labels_;
  std::vector<Instruction> before_, code_;
  std::vector<std::pair<size_t, std::string>> branches_;
};

void Decoder::run() {
  if (!function_.entry) {
    function_.local_bytes = (function_.parameter_bytes + 15) / 16 * 16;
    for (const auto* list : {&function_.parameters, &function_.results})
      for (const Parameter& one : *list) locals_[one.name] = one;
  }
  function_.shared_bytes = module_.shared_bytes;
  std::string_view text = function_.body;
  size_t begin = 0;
  int braces = 0;  // of operands
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool fresh = trimmed(text.substr(begin, i - begin)).empty();
    if (fresh && (c == '{' || c == '}')) {
      c == '{' ? void(scopes_.emplace_back()) : scopes_.pop_back();
      begin = i + 1;
    } else if (c == ':' && text.substr(begin, i - begin).find_first_of("[{,") == std::string_view::npos) {
      labels_[std::string(trimmed(text.substr(begin, i - begin)))] = static_cast<uint32_t>(code_.size());
      begin = i + 1;
    } else if (c == ';' && braces == 0) {
      statement(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    } else {
      braces += (c == '{') - (c == '}');
    }
    line_ += c == '\n';
  }
  Instruction end;
  end.flow = function_.entry ? Flow::kExit : Flow::kReturn;
  end.line = line_, end.text = "}";
  code_.push_back(end);
  for (const auto& [at, label] : branches_) {
    const auto found = labels_.find(label);
    if (found == labels_.end()) refuse("no label " + label);
    code_[at].target = found->second + static_cast<uint32_t>(before_.size());
  }
  function_.code = std::move(before_);
  function_.code.insert(function_.code.end(), code_.begin(), code_.end());
  function_.registers = registers_;
}

uint32_t Decoder::reserve(uint32_t& bytes, const Declaration& declared) {
  bytes = (bytes + declared.align - 1) / declared.align * declared.align;
  const uint32_t at = bytes;
  bytes += declared.bytes;
  return at;
}

void Decoder::statement(std::string_view text) {
  if (text.empty()) return;
  if (text.front() == '.')
    declare(text);
  else
    instruction(text);
}

void Decoder::declare(std::string_view text) {
  const std::string_view word = take_word(text);
  if (word == ".reg") {
    take_word(text);  // the type: registers are all alike
    for (std::string_view name : split(text, ',')) {
      const size_t angle = name.find('<');
      if (angle == std::string_view::npos) {
        scopes_.back()[std::string(name)] = registers_++;
        continue;
      }
      const uint64_t count = number(name.substr(angle + 1, name.find('>') - angle - 1));
      for (uint64_t k = 0; k < count; ++k)
        scopes_.back()[std::string(name.substr(0, angle)) + std::to_string(k)] = registers_++;
    }
  } else if (word == ".local" || word == ".param") {
    const Declaration declared = declaration(text);
    locals_[declared.name] = {declared.name, reserve(function_.local_bytes, declared), declared.bytes};
    prepared_.erase("&" + declared.name);
  } else if (word == ".shared") {
    const Declaration declared = declaration(text);
    shared_[declared.name] = reserve(function_.shared_bytes, declared);
  } else if (word != ".pragma" && word != ".loc") {
    refuse("not known: " + std::string(word));
  }
}

uint32_t Decoder::reg(std::string_view name) {
  if (name == "_") return 0;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->find(name); found != scope->end()) return found->second;
  refuse("no register " + std::string(name));
}

Source Decoder::immediate(uint64_t bits) {
  auto& slot = function_.constants[bits];
  if (!slot) {
    slot = std::make_unique<std::array<uint64_t, kLanes>>();
    slot->fill(bits);
  }
  return {0, slot->data()};
}

uint32_t Decoder::prepared(const std::string& key, Handler handler, int64_t offset) {
  const auto [found, fresh] = prepared_.try_emplace(key, registers_);
  if (fresh) {
    ++registers_;
    Instruction made;
    made.run = handler, made.out[0] = found->second, made.offset = offset, made.line = line_,
    made.text = "(what the function names)";
    before_.push_back(made);
  }
  return found->second;
}

Source Decoder::source(std::string_view text) {
  if (is_number(text)) return immediate(number(text));
  if (const auto special = special_registers().find(std::string(text)); special != special_registers().end())
    return {prepared(special->first, special->second, 0), nullptr};
  const std::string name(text), key = "&" + name;
  if (const auto found = locals_.find(name); found != locals_.end())
    return {prepared(key, local_address, found->second.offset), nullptr};
  if (const auto found = shared_.find(name); found != shared_.end()) return immediate(found->second);
  if (function_.entry)
    for (const Parameter& one : function_.parameters)
      if (one.name == name) return {prepared(key, parameter_address, one.offset), nullptr};
  if (const auto found = module_.shared.find(name); found != module_.shared.end()) return immediate(found->second);
  if (const auto found = module_.globals.find(name); found != module_.globals.end()) return immediate(found->second);
  return {reg(text), nullptr};
}

// [register], [register + 8], [name + 8], [8]
void Decoder::address(Instruction& made, std::string_view text) {
  if (text.size() < 2 || text.front() != '[') refuse("not an address: " + std::string(text));
  std::string_view inside = trimmed(text.substr(1, text.find(']') - 1));
  if (const size_t plus = inside.find('+'); plus != std::string_view::npos) {
    made.offset = static_cast<int64_t>(number(trimmed(inside.substr(plus + 1))));
    inside = trimmed(inside.substr(0, plus));
  }
  made.in[0] = source(inside);
  if (made.space == Space::kParam && locals_.contains(std::string(inside))) made.space = Space::kLocal;
}

void Decoder::instruction(std::string_view text) {
  Instruction made;
  made.line = line_, made.text = text;
  if (text.front() == '@') {
    std::string_view guard = take_word(text).substr(1);
    made.negated = guard.front() == '!';
    made.guard = static_cast<int32_t>(reg(made.negated ? guard.substr(1) : guard));
  }
  std::vector<std::string_view> words = split(take_word(text), '.');
  const std::string_view name = words[0];
  const auto operands = split(text, ',');
  if (name == "bra") {
    made.flow = Flow::kBranch;
    branches_.emplace_back(code_.size(), std::string(operands.at(0)));
  } else if (name == "ret" || name == "exit") {
    made.flow = name == "exit" || function_.entry ? Flow::kExit : Flow::kReturn;
  } else if (name == "call") {
    call(made, text);
  } else if ((name == "bar" || name == "barrier") && words.size() > 1 && words[1] != "warp") {
    if (operands.size() != 1 || words[std::min<size_t>(words[1] == "cta" ? 2 : 1, words.size() - 1)] != "sync")
      refuse("unknown instruction: " + std::string(made.text));
    made.flow = Flow::kBarrier;
  } else if (name == "ld" || name == "st" || name == "atom" || name == "red") {
    memory(made, words, operands);
  } else if (name == "cp") {
    asynchronous_copy(made, words, operands);
  } else if (name == "mma" || name == "ldmatrix") {
    matrices(made, words, operands);
  } else {
    plain(made, words, operands);
  }
  made.collective = made.flow == Flow::kNext && std::find(words.begin(), words.end(), "sync") != words.end();
  if (made.flow == Flow::kNext && !made.run) refuse("unknown instruction: " + std::string(made.text));
  code_.push_back(made);
}

void Decoder::memory(Instruction& made, const std::vector<std::string_view>& words,
                     const std::vector<std::string_view>& operands) {
  static const std::map<std::string_view, Space> spaces = {{"global", Space::kGlobal},
                                                           {"shared", Space::kShared},
                                                           {"local", Space::kLocal},
                                                           {"param", Space::kParam},
                                                           {"const", Space::kGlobal}};
  const Type type = type_named(words.back());
  if (type == Type::kNone || operands.size() < 2) refuse("unknown instruction: " + std::string(made.text));
  std::vector<std::string_view> handler{words[0] == "red" ? "atom" : words[0]};
  for (size_t k = 1; k + 1 < words.size(); ++k) {
    const std::string_view word = words[k];
    if (const auto space = spaces.find(word); space != spaces.end())
      made.space = space->second;
    else if (word == "v2" || word == "v4")
      made.count = word == "v2" ? 2 : 4;
    else if (words[0] == "atom" || words[0] == "red")
      handler.push_back(word);
    else if (word != "nc" && word != "volatile" && word != "relaxed" && word != "cta" && word != "gpu" && word != "sys")
      refuse("unknown instruction: " + std::string(made.text));
  }
  made.width = static_cast<uint8_t>(size_of(type));
  made.is_signed = words.back()[0] == 's';
  const bool loads = words[0] == "ld", stores = words[0] == "st", gives = words[0] == "atom";
  address(made, operands[loads || gives ? 1 : 0]);
  if (loads) {
    const auto out = listed(operands[0]);
    if (out.size() != made.count) refuse("unknown instruction: " + std::string(made.text));
    for (size_t k = 0; k < out.size(); ++k) made.out[k] = reg(out[k]);
  } else if (stores) {
    const auto in = listed(operands[1]);
    if (in.size() != made.count) refuse("unknown instruction: " + std::string(made.text));
    for (size_t k = 0; k < in.size(); ++k) made.in[k + 1] = source(in[k]);
  } else {
    handler.push_back(words.back());
    if (gives) made.out[0] = reg(operands[0]);
    for (size_t k = gives ? 2 : 1, to = 1; k < operands.size() && to < 3; ++k, ++to) made.in[to] = source(operands[k]);
  }
  made.run = find_handler(handler);
}

// cp.async: [to], [from], bytes, and how many of them are read; or a wait.
void Decoder::asynchronous_copy(Instruction& made, const std::vector<std::string_view>& words,
                                const std::vector<std::string_view>& operands) {
  if (!operands.empty()) {
    if (operands.size() < 3) refuse("unknown instruction: " + std::string(made.text));
    Instruction from;
    address(from, operands[1]);
    address(made, operands[0]);
    if (from.offset != 0) refuse("an offset of a source: " + std::string(made.text));
    made.in[1] = from.in[0];
    made.in[2] = source(operands[2]);
    made.in[3] = source(operands[operands.size() > 3 ? 3 : 2]);
  }
  made.space = Space::kShared;
  made.run = find_handler(words);
}

// Registers in braces, and of ldmatrix an address.
void Decoder::matrices(Instruction& made, const std::vector<std::string_view>& words,
                       const std::vector<std::string_view>& operands) {
  made.run = find_handler(words);
  made.space = Space::kShared;
  if (!made.run || operands.size() < 2) return;
  const auto out = listed(operands[0]);
  for (size_t k = 0; k < out.size() && k < made.out.size(); ++k) made.out[k] = reg(out[k]);
  if (words[0] == "ldmatrix") return address(made, operands[1]);
  size_t to = 0;
  for (size_t k = 1; k < operands.size(); ++k)
    for (const std::string_view one : listed(operands[k]))
      if (to < made.in.size()) made.in[to++] = source(one);
}

// (results), name, (arguments) with the parts that there are.
void Decoder::call(Instruction& made, std::string_view text) {
  auto parts = split(text, ',');
  auto planned = std::make_unique<Instruction::Call>();
  const auto names = [](std::string_view list) { return split(list.substr(1, list.size() - 2), ','); };
  std::vector<std::string_view> results, arguments;
  if (!parts.empty() && parts.front().front() == '(') {
    results = names(parts.front());
    parts.erase(parts.begin());
  }
  if (parts.size() > 1) arguments = names(parts[1]);
  const auto found = parts.empty() ? module_.functions.end() : module_.functions.find(parts[0]);
  if (found == module_.functions.end()) refuse("unknown function: " + std::string(made.text));
  Function& callee = *found->second;
  decode(module_, callee);
  planned->callee = &callee;
  if (arguments.size() != callee.parameters.size() || results.size() != callee.results.size())
    refuse("a call with other parameters: " + std::string(made.text));
  for (size_t k = 0; k < arguments.size(); ++k)
    planned->in.push_back(
        {locals_.at(std::string(arguments[k])).offset, callee.parameters[k].offset, callee.parameters[k].size});
  for (size_t k = 0; k < results.size(); ++k)
    planned->out.push_back(
        {locals_.at(std::string(results[k])).offset, callee.results[k].offset, callee.results[k].size});
  made.flow = Flow::kCall;
  made.call = planned.get();
  function_.calls.push_back(std::move(planned));
}

void Decoder::plain(Instruction& made, std::vector<std::string_view> words,
                    const std::vector<std::string_view>& operands) {
  std::string name;
  const auto parts = [](std::string_view text) { return split(text.substr(1, text.size() - 2), ','); };
  size_t first = 1;
  if (words[0] == "mov" && operands.size() == 2 && operands[1].front() == '{') {
    const auto in = parts(operands[1]);
    name = "pack" + std::to_string(in.size());
    for (size_t k = 0; k < in.size() && k < made.in.size(); ++k) made.in[k] = source(in[k]);
    made.out[0] = reg(operands[0]);
  } else if (words[0] == "mov" && operands.size() == 2 && operands[0].front() == '{') {
    const auto out = parts(operands[0]);
    name = "unpack" + std::to_string(out.size());
    for (size_t k = 0; k < out.size() && k < made.out.size(); ++k) made.out[k] = reg(out[k]);
    made.in[0] = source(operands[1]);
  } else {
    if (words[0] == "bar" || operands.empty() || words[0] == "membar" || words[0] == "fence") first = 0;
    if (first == 1) {
      const auto out = split(operands[0], '|');
      made.count = static_cast<uint8_t>(out.size());
      for (size_t k = 0; k < out.size() && k < 2; ++k) made.out[k] = reg(out[k]);
    }
    if (operands.size() - first > made.in.size()) refuse("unknown instruction: " + std::string(made.text));
    for (size_t k = first; k < operands.size(); ++k) made.in[k - first] = source(operands[k]);
  }
  if (!name.empty()) words[0] = name;
  made.run = find_handler(words);
}

}  // namespace

void decode(Module& module, Function& function) {
  if (function.decoded) return;
  function.decoded = true;
  Decoder(module, function).run();
}

}  // namespace emulator
