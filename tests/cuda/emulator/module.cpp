// What a module declares: functions, device memory with its first values, shared memory. See program.hpp.
#include <algorithm>
#include <cstring>

#include "lanes.hpp"
#include "memory.hpp"
#include "text.hpp"

namespace emulator {
namespace {

constexpr int kInvalidPtx = 218;

[[noreturn]] void refuse(uint32_t line, const std::string& what) {
  throw Fault(kInvalidPtx, "PTX, line " + std::to_string(line) + ": " + what);
}

// Comments become spaces, so that places stay.
void blank_comments(std::string& text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != '/') continue;
    const bool block = text[i + 1] == '*';
    if (!block && text[i + 1] != '/') continue;
    const size_t end = std::min(block ? text.find("*/", i) + 2 : text.find('\n', i), text.size());
    for (; i < end; ++i)
      if (text[i] != '\n') text[i] = ' ';
  }
}

std::vector<Parameter> parameters(std::string_view list, uint32_t& bytes) {
  std::vector<Parameter> found;
  for (std::string_view one : split(list, ',')) {
    const Declaration declared = declaration(one);
    bytes = (bytes + declared.align - 1) / declared.align * declared.align;
    found.push_back({declared.name, bytes, declared.bytes});
    bytes += declared.bytes;
  }
  return found;
}

class Reader {
 public:
  explicit Reader(Module& module) : module_(module), text_(module.text) {}

  void read() {
    while (skip_space(), at_ < text_.size()) {
      const size_t begin = at_;
      // A directive ends with its line; a declaration with a semicolon, a function with its body.
      if (starts(".version") || starts(".target") || starts(".address_size") || starts(".file") || starts(".loc")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      const size_t stop = text_.find_first_of(";{", at_);
      if (stop == std::string_view::npos) refuse(line(), "a declaration without an end");
      const std::string_view head = text_.substr(begin, stop - begin);
      const bool function =
          head.find(".entry") != std::string_view::npos || head.find(".func") != std::string_view::npos;
      function ? read_function(head, stop) : read_variable(begin);
    }
  }

 private:
  bool starts(std::string_view word) const { return text_.substr(at_, word.size()) == word; }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) {
      if (text_[at_] == '\n') ++counted_line_;
      ++at_, counted_ = at_;
    }
  }
  uint32_t line() {
    counted_line_ += static_cast<uint32_t>(std::count(text_.begin() + static_cast<ptrdiff_t>(counted_),
                                                      text_.begin() + static_cast<ptrdiff_t>(at_), '\n'));
    counted_ = at_;
    return counted_line_;
  }

  void read_function(std::string_view head, size_t stop) {
    auto made = std::make_unique<Function>();
    made->entry = head.find(".entry") != std::string_view::npos;
    std::string_view rest = head.substr(head.find(made->entry ? ".entry" : ".func") + (made->entry ? 6 : 5));
    rest = trimmed(rest);
    if (!rest.empty() && rest.front() == '(') {  // the results come first
      made->results = parameters(rest.substr(1, rest.find(')') - 1), made->parameter_bytes);
      rest = trimmed(rest.substr(rest.find(')') + 1));
    }
    const size_t open = rest.find('('), close = rest.find(')');
    made->name = trimmed(rest.substr(0, open));
    if (open != std::string_view::npos)
      made->parameters = parameters(rest.substr(open + 1, close - open - 1), made->parameter_bytes);
    if (text_[stop] == ';') {  // a declaration only
      at_ = stop + 1;
      return;
    }
    at_ = stop + 1;
    made->line = line();
    int depth = 1;
    size_t end = at_;
    for (; end < text_.size() && depth > 0; ++end) depth += (text_[end] == '{') - (text_[end] == '}');
    if (depth != 0) refuse(line(), "the body of " + made->name + " has no end");
    made->body = text_.substr(at_, end - 1 - at_);
    at_ = end;
    line();
    const std::string name = made->name;
    module_.functions[name] = std::move(made);
  }

  void read_variable(size_t begin) {
    const size_t end = text_.find(';', begin);
    if (end == std::string_view::npos) refuse(line(), "a declaration without an end");
    std::string_view rest = text_.substr(begin, end - begin);
    at_ = end + 1;
    if (starts_with_any(rest, {".weak", ".visible", ".extern", ".common"})) take_word(rest);
    const std::string_view space = take_word(rest);
    const Declaration declared = declaration(rest);
    if (space == ".shared") {
      uint32_t& bytes = module_.shared_bytes;
      bytes = (bytes + declared.align - 1) / declared.align * declared.align;
      module_.shared[declared.name] = bytes;
      bytes += declared.bytes;
    } else if (space == ".global" || space == ".const") {
      define(declared);
    } else {
      refuse(line(), "not known: " + std::string(space));
    }
  }
  static bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return text.substr(0, word.size()) == word; });
  }

  // Device memory of the module: zeros, or the initialiser's values.
  void define(const Declaration& declared) {
    const uint64_t address =
        Memory::instance().allocate(std::max<uint32_t>(declared.bytes, 1), "variable " + declared.name);
    if (address == 0) throw Fault(2, "no memory for variable " + declared.name);
    auto* bytes = reinterpret_cast<char*>(address);
    std::memset(bytes, 0, declared.bytes);
    uint32_t k = 0;
    for (std::string_view value : split(declared.values, ',')) {
      if (k * declared.item >= declared.bytes) refuse(line(), declared.name + " has more values than elements");
      const uint64_t bits = number(value);
      std::memcpy(bytes + k++ * declared.item, &bits, declared.item);
    }
    Memory::instance().write(address, declared.bytes);
    module_.globals[declared.name] = address;
  }

  Module& module_;
  std::string_view text_;
  size_t at_ = 0, counted_ = 0;
  uint32_t counted_line_ = 1;
};

}  // namespace

Module::~Module() {
  for (const auto& [name, address] : globals) Memory::instance().free(address);
}

std::unique_ptr<Module> load_module(std::string text) {
  auto module = std::make_unique<Module>();
  module->text = std::move(text);
  blank_comments(module->text);
  if (module->text.find(".version") == std::string::npos) refuse(1, "no .version: this is not PTX");
  Reader(*module).read();
  return module;
}

uint32_t size_of(Type type) {
  static constexpr uint8_t kSizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8};
  return kSizes[static_cast<size_t>(type)];
}

Type type_named(std::string_view name) {
  static constexpr std::string_view kNames[] = {"",    "pred", "u8",  "u16", "u32", "u64", "s8",  "s16", "s32",
                                                "s64", "b8",   "b16", "b32", "b64", "f16", "f32", "f64"};
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  return found == std::end(kNames) ? Type::kNone : static_cast<Type>(found - std::begin(kNames));
}

Declaration declaration(std::string_view text) {
  Declaration made;
  text = trimmed(text);
  if (const size_t equals = text.find('='); equals != std::string_view::npos) {
    made.values = trimmed(text.substr(equals + 1));
    if (!made.values.empty() && made.values.front() == '{')
      made.values = made.values.substr(1, made.values.rfind('}') - 1);
    text = trimmed(text.substr(0, equals));
  }
  while (!text.empty() && text.front() == '.') {
    const std::string_view word = take_word(text);
    if (word == ".align") {
      made.align = static_cast<uint32_t>(number(take_word(text)));
    } else if (const Type type = type_named(word.substr(1)); type != Type::kNone) {
      made.item = size_of(type);
      made.align = std::max(made.align, made.item);
    }
  }
  const size_t bracket = text.find('[');
  made.name = trimmed(text.substr(0, bracket));
  made.bytes = made.item;
  if (bracket != std::string_view::npos) {
    const std::string_view count = trimmed(text.substr(bracket + 1, text.find(']') - bracket - 1));
    made.bytes *= count.empty() ? 0 : static_cast<uint32_t>(number(count));
  }
  return made;
}

bool is_number(std::string_view text) {
  return !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-');
}

uint64_t number(std::string_view text) {
  const std::string word(text);
  if (word.size() > 2 && word[0] == '0' && (word[1] == 'f' || word[1] == 'F'))
    return std::stoull(word.substr(2), nullptr, 16);
  if (word.size() > 2 && word[0] == '0' && (word[1] == 'd' || word[1] == 'D'))
    return std::stoull(word.substr(2), nullptr, 16);
  if (!word.empty() && word[0] == '-') return 0 - std::stoull(word.substr(1), nullptr, 0);
  return std::stoull(word, nullptr, 0);
}

Handler find_handler(const std::vector<std::string_view>& words) {
  static const Handlers handlers = [] {
    Handlers made;
    add_integer_handlers(made), add_float_handlers(made), add_conversion_handlers(made);
    add_compare_handlers(made), add_warp_handlers(made), add_memory_handlers(made), add_tensor_handlers(made);
    return made;
  }();
  std::string name;
  for (const std::string_view word : words) name += (name.empty() ? "" : ".") + std::string(word);
  const auto found = handlers.find(name);
  return found == handlers.end() ? nullptr : found->second;
}

}  // namespace emulator
