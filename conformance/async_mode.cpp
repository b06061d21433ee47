// Mode async: what the host and a device make of work that runs late, fails late or is lost.
//
// Each law goes through the public functions, as a program does, so that the host's bookkeeping is tried with the
// device's. A device without streams has nothing that runs late.
#include <utility>

#include "laws/table.hpp"
#include "subject.hpp"

namespace backplane::conformance {

void run_async(const Subject& subject, const std::vector<Entry>&, const Options& options, const Progress& progress,
               std::vector<Outcome>& outcomes) {
  const Table table(subject.device);
  Laws laws;
  add_memory_order_laws(table, laws);
  add_waiting_laws(table, laws);
  add_work_laws(table, laws);
  add_loss_laws(table, laws);
  run_laws(std::move(laws), options, progress, outcomes);
}

}  // namespace backplane::conformance
