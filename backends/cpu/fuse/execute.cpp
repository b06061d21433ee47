// Runs a program: finds its tensors, walks the space tile by tile on the host's threads, and stores the reductions
// over all tiles.
#include <optional>

#include "fuse/tensors.hpp"
#include "fuse/tile.hpp"

namespace backplane::cpu::fuse {
namespace {

// Weighted elements from which a second thread pays: in the cache an instruction takes a tenth of a kernel's time.
constexpr int64_t kGrain = 10 * kCheapGrain;
constexpr int64_t kPartElements = 65536;  // of what is reduced over all tiles, piece by piece

// One execution, from the tensors on.
class Run {
 public:
  Run(const bp_frame* frame, const Program& program, const Tensors& tensors)
      : frame_(frame), program_(program), tensors_(tensors), uniform_(program.n_uniform) {}

  void uniform() {
    if (program_.uniform.code.empty()) return;
    Tile once(frame_, program_, shared());
    once.begin(program_.uniform, nullptr, 1, 1);
    std::vector<Place> places;
    for (const uint32_t k : program_.uniform.tensors) places.push_back({tensors_.base(k), 0, 0});
    once.set_tensors(places.data());
    once.run(1, 1);
  }

  void tiled(bp_value* outs) {
    int64_t units = 0, cost = 0;
    for (const Part& part : program_.tiled) {
      Walked walked{&part, tensors_.walk(part), units, units, 1};
      const Walk& walk = walked.walk;
      if (!program_.columns.empty())
        walked.unit = walk.tiles_of_part(kPartElements / walk.columns(), kLeafRows);
      else if (!program_.wholes.empty())
        walked.unit = std::max<int64_t>(kPartElements / walk.elements(), 1);
      units += (walk.tiles() + walked.unit - 1) / walked.unit;
      walked.end = units;
      cost = std::max(cost, walked.unit * walk.elements() * part.weight);
      walked_.push_back(std::move(walked));
    }
    if (program_.reduces_tiles()) make_results(units);
    const auto range = [&](int64_t begin, int64_t end) { run_units(begin, end); };
    const int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(cost, 1), 1);
    if (units <= grain)
      range(0, units);
    else
      plugin::parallel_for(frame_, 0, units, grain, range);
    if (columns_) columns_->store(outs);
    if (wholes_) wholes_->store(outs);
  }

 private:
  // A part, and which of the units of work are its own: each a tile, or where tiles are reduced some of them.
  struct Walked {
    const Part* part;
    Walk walk;
    int64_t begin, end, unit;  // of a unit: tiles
  };

  void make_results(int64_t units) {
    const Walk& walk = walked_[0].walk;
    const int64_t unit = walked_[0].unit;
    if (!program_.columns.empty())
      columns_.emplace(program_, walk.columns(), walk.all_rows(), std::min(unit * walk.rows(), walk.all_rows()), units);
    if (program_.wholes.empty()) return;
    std::vector<int64_t> begins;
    for (int64_t i = 0; i <= units; ++i) begins.push_back(walk.offset(std::min(i * unit, walk.tiles())));
    wholes_.emplace(program_, std::move(begins));
  }

  char* shared() { return reinterpret_cast<char*>(uniform_.data()); }

  void run_units(int64_t begin, int64_t end) {
    int64_t bytes = 0;
    for (const Walked& each : walked_)
      bytes = std::max(bytes, Tile::memory_for(program_, each.walk.elements(), each.walk.rows()));
    const Scratch<char> memory(bytes);
    Tile tile(frame_, program_, shared());
    std::vector<Place> places(program_.tensors.size());
    for (const Walked& each : walked_) {
      const int64_t first = std::max(begin, each.begin) - each.begin, last = std::min(end, each.end) - each.begin;
      if (first >= last) continue;
      tile.begin(*each.part, memory.get(), each.walk.elements(), each.walk.rows());
      const auto run = [&](int64_t rows, int64_t columns) {
        tile.set_tensors(places.data());
        tile.set_columns(columns);
        tile.run(rows, columns);
      };
      if (!program_.reduces_tiles()) {
        each.walk.for_each_tile(first, last, places.data(), run);
        continue;
      }
      for (int64_t i = first; i < last; ++i) {
        std::vector<ColumnPart> columns = columns_ ? columns_->part() : std::vector<ColumnPart>();
        std::vector<WholePart> wholes = wholes_ ? wholes_->part(static_cast<size_t>(i)) : std::vector<WholePart>();
        tile.set_results(&columns, &wholes);
        each.walk.for_each_tile(i * each.unit, std::min((i + 1) * each.unit, each.walk.tiles()), places.data(), run);
        if (columns_) columns_->finish(columns, i);
      }
    }
  }

  const bp_frame* frame_;
  const Program& program_;
  const Tensors& tensors_;
  std::vector<Number> uniform_;
  std::vector<Walked> walked_;
  std::optional<ColumnResults> columns_;
  std::optional<WholeResults> wholes_;
};

}  // namespace

void execute(const bp_frame* frame, const Program& program, const bp_value* inputs, int32_t n_inputs, bp_value* outs,
             int32_t n_outs) {
  BP_CHECK(n_inputs == static_cast<int32_t>(program.n_inputs) && n_outs == static_cast<int32_t>(program.n_outputs),
           VALUE, frame->op->name, ": a region of ", program.n_inputs, " inputs and ", program.n_outputs,
           " outputs was given ", n_inputs, " and ", n_outs);
  const Tensors tensors(program, inputs, outs);
  if (tensors.count() == 0) return;
  Run run(frame, program, tensors);
  run.uniform();
  run.tiled(outs);
  tensors.write_back();
}

}  // namespace backplane::cpu::fuse
