#include "memory/process/plugin_record.hpp"

namespace backplane::core {

PluginRecord* core_plugin() {
  static PluginRecord* record = [] {
    auto* r = new PluginRecord;
    r->name = "backplane";
    r->state = PluginRecord::State::kLoaded;
    return r;
  }();
  return record;
}

}  // namespace backplane::core
