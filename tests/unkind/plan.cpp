#include "plan.hpp"

#include <cstdlib>
#include <sstream>

#include "backplane/error.hpp"

namespace unkind {
namespace {

int64_t number(const std::string& word, const std::string& value) {
  char* end = nullptr;
  const int64_t found = std::strtoll(value.c_str(), &end, 10);
  BP_CHECK(!value.empty() && *end == 0, VALUE, "unkind: \"", word, "\" expects a number, found \"", value, "\"");
  return found;
}

}  // namespace

Plan Plan::parse(const std::string& text) {
  Plan plan;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const size_t equal = word.find('=');
    const std::string name = word.substr(0, equal);
    const std::string value = equal == std::string::npos ? "" : word.substr(equal + 1);
    if (name == "pace") {
      BP_CHECK(value == "eager" || value == "late", VALUE, "unkind: \"pace\" expects eager or late, found \"", value,
               "\"");
      plan.eager = value == "eager";
      continue;
    }
    int64_t* const place = name == "lose"        ? &plan.lose
                           : name == "hang"      ? &plan.hang
                           : name == "fail"      ? &plan.fail
                           : name == "oom"       ? &plan.oom
                           : name == "oom_every" ? &plan.oom_every
                                                 : nullptr;
    BP_CHECK(place || name == "seed", VALUE,
             "unkind: expected seed, pace, lose, hang, fail, oom or oom_every, found \"", name, "\"");
    if (place)
      *place = number(name, value);
    else
      plan.seed = static_cast<uint64_t>(number(name, value));
  }
  return plan;
}

Plan Plan::of_environment() {
  const char* text = std::getenv("BACKPLANE_UNKIND");
  return parse(text ? text : "");
}

}  // namespace unkind
