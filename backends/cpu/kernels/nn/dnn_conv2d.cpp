// See dnn_conv2d.hpp. The work is cut into pieces of some images and a slice of the result's channels. For each piece,
// one thread converts to oneDNN's layout, computes and converts back, while it is in the cache. Data that all pieces
// share is brought into that layout once.
#ifdef BACKPLANE_ONEDNN

#include "kernels/nn/dnn_conv2d.hpp"

#include <algorithm>
#include <optional>

#include "kernels/nn/dnn_plan.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

using dnnl::memory;

// Multiply-adds of a piece, where images are small: calling oneDNN costs some 10 microseconds.
constexpr int64_t kPieceWork = int64_t{1} << 21;
// Multiply-adds from which oneDNN gains on the other ways. In groups these multiply small matrices, one per group: on
// one thread of a Xeon (AVX-512), 96 channels of 20 by 20 by 5 by 5 each take 50 microseconds here and 519 there; 32 of
// 8 by 8 by 3 by 3, 11 and 15; 16 of 5 by 5 by 3 by 3, 9 and 6.
constexpr int64_t kLeastWork = int64_t{1} << 20, kLeastGroupedWork = int64_t{1} << 14;
// Kernels this many times the size of an image and its result are read from memory for every piece.
constexpr int64_t kHeavy = 8;
// Channels of a block in oneDNN's layouts: slices are made of whole ones.
constexpr int64_t kBlock = 16;
// Large kernels are cut even on one thread, so that a slice of them, in both layouts, stays in the cache: into about
// this many bytes, but not fewer channels, because oneDNN's loops need some.
constexpr int64_t kSliceBytes = 512 << 10, kSliceChannels = 64;

// The result's channels, or its groups, in `slices` equal parts.
struct Cut {
  int64_t images;  // of a piece
  int64_t pieces;  // along the images
  int64_t slices;
};

int64_t& sliced(Convolution& c, Pass pass) {
  return c.groups > 1 ? c.groups : pass == Pass::kInput ? c.channels : c.filters;
}

Cut cut_of(Pass pass, Convolution c, int64_t workers) {
  Cut cut{c.images, 1, 1};
  if (pass != Pass::kWeight) {
    const int64_t each = (c.images + workers - 1) / workers;
    // One image at a time stays in the cache, unless the kernels are what fills it.
    const bool heavy = c.kernel_size() > kHeavy * (c.image_size() + c.result_size());
    cut.images = heavy ? each : std::clamp<int64_t>(kPieceWork / (c.work() * c.groups), 1, each);
    cut.pieces = (c.images + cut.images - 1) / cut.images;
  }
  const int64_t axis = sliced(c, pass), block = c.groups > 1 && c.channels > 1 ? 1 : kBlock;
  int64_t wanted = cut.pieces < workers && c.images * c.work() * c.groups > kPieceWork ? workers : 1;
  if (cut.pieces == 1 && c.groups == 1)
    wanted = std::max(wanted, std::min(c.kernel_size() * int64_t{sizeof(float)} / kSliceBytes, axis / kSliceChannels));
  cut.slices = std::clamp<int64_t>(axis / block, 1, wanted);
  while (cut.slices > 1 && axis % (cut.slices * block) != 0) --cut.slices;
  return cut;
}

Problem problem_of(Pass pass, const Convolution& whole, const Cut& cut, int64_t images, bool winograd) {
  Problem p{pass, whole, whole, winograd};
  p.c.images = images;
  sliced(p.c, pass) /= cut.slices;
  return p;
}

// F(4 x 4, 3 x 3) computes tiles of 6 by 6 pixels: small images waste them, and few channels do not pay the transforms.
bool suits_winograd(const Convolution& c) {
  const Windows& v = c.windows;
  const auto both = [](const int64_t(&pair)[2], int64_t value) { return pair[0] == value && pair[1] == value; };
  return c.groups == 1 && both(v.kernel, 3) && both(v.stride, 1) && both(v.dilation, 1) && c.channels % kBlock == 0 &&
         c.filters % kBlock == 0 && std::min(v.out_height, v.out_width) >= 20;
}

constexpr int kResult[] = {2, 0, 1};  // of x, w and y, by pass
constexpr int kShared[] = {1, 1, 0};  // an operand of which every piece along images, or every slice, needs all

struct Operands {
  float *x, *w, *y;
};

// What a thread needs to run pieces of a plan.
class Worker {
 public:
  Worker(const Plan& plan, Pass pass, const memory* prepared)
      : plan_(plan),
        result_(kResult[static_cast<int>(pass)]),
        prepared_(prepared),
        stream_(dnn_engine()),
        scratchpad_(static_cast<int64_t>(plan.scratchpad.get_size())) {
    for (int i = 0; i < 3; ++i)
      if (!plan.operands[i].direct() && !(prepared != nullptr && i == kShared[static_cast<int>(pass)]))
        buffers_[i].emplace(static_cast<int64_t>(plan.operands[i].wanted.get_size()));
  }

  void run(const Operands& operands) {
    float* const data[] = {operands.x, operands.w, operands.y};
    std::unordered_map<int, memory> arguments{
        {DNNL_ARG_SCRATCHPAD, memory(plan_.scratchpad, dnn_engine(), scratchpad_.get())}};
    memory plain[3];
    for (int i = 0; i < 3; ++i) {
      const Operand& operand = plan_.operands[i];
      plain[i] = memory(operand.plain, dnn_engine(), data[i]);
      memory& wanted = arguments[operand.argument];
      wanted = operand.direct()          ? plain[i]
               : buffers_[i].has_value() ? memory(operand.wanted, dnn_engine(), buffers_[i]->get())
                                         : *prepared_;
      if (buffers_[i].has_value() && i != result_)
        operand.reorder.execute(stream_, {{DNNL_ARG_FROM, plain[i]}, {DNNL_ARG_TO, wanted}});
    }
    plan_.convolution.execute(stream_, arguments);
    const Operand& result = plan_.operands[result_];
    if (!result.direct())
      result.reorder.execute(stream_, {{DNNL_ARG_FROM, arguments[result.argument]}, {DNNL_ARG_TO, plain[result_]}});
    stream_.wait();
  }

 private:
  const Plan& plan_;
  int result_;
  const memory* prepared_;
  dnnl::stream stream_;
  Scratch<char> scratchpad_;
  std::optional<Scratch<char>> buffers_[3];
};

// `from` into the wanted layout `to`, its first axis in parts of whole `block`s, one per thread where that fits.
void prepare(const bp_frame* frame, const Operand& operand, float* from, const memory& to, int64_t block) {
  memory::dims shape = operand.shape;
  const int64_t rows = shape[0];
  int64_t parts = frame->host->worker_count();
  while (parts > 1 && rows % (parts * block) != 0) --parts;
  shape[0] = rows / parts;
  const auto range = [&](int64_t begin, int64_t end) {
    const DnnCall call;
    dnnl::stream stream(dnn_engine());
    for (int64_t part = begin; part < end; ++part) {
      memory::dims offsets(shape.size());
      offsets[0] = part * shape[0];
      memory source(operand.plain.submemory_desc(shape, offsets), dnn_engine(), from);
      memory target(operand.wanted.submemory_desc(shape, offsets), dnn_engine(), to.get_data_handle());
      dnnl::reorder(source, target).execute(stream, source, target);
    }
    stream.wait();
  };
  if (parts == 1) return range(0, 1);
  plugin::parallel_for(frame, 0, parts, 1, range);
}

// Where piece `images` x `slice` begins.
Operands at(Operands whole, Pass pass, const Convolution& c, int64_t image, int64_t slice, const Convolution& piece) {
  whole.x += image * c.groups * c.image_size();
  whole.y += image * c.groups * c.result_size();
  if (c.groups > 1) {
    const int64_t group = slice * piece.groups;
    return {whole.x + group * c.image_size(), whole.w + group * c.kernel_size(), whole.y + group * c.result_size()};
  }
  if (pass == Pass::kInput) {
    const int64_t channel = slice * piece.channels;
    return {whole.x + channel * c.windows.image(), whole.w + channel * c.windows.taps(), whole.y};
  }
  const int64_t filter = slice * piece.filters;
  return {whole.x, whole.w + filter * c.taps(), whole.y + filter * c.windows.outputs()};
}

void run(const bp_frame* frame, const Problem& problem, const Cut& cut, const Plan& plan, const Plan& last,
         const Operands& whole) {
  const Pass pass = problem.pass;
  const int64_t count = cut.pieces * cut.slices;
  const int shared = kShared[static_cast<int>(pass)];
  const Operand& operand = plan.operands[shared];
  // Slices of kernels differ from one another; images do not.
  const bool prepares = !operand.direct() && (pass == Pass::kWeight ? cut.slices > 1 && problem.whole.groups == 1
                                                                    : cut.slices == 1 && cut.pieces > 1);
  std::optional<Scratch<char>> buffer;
  memory prepared;
  if (prepares) {
    buffer.emplace(static_cast<int64_t>(operand.wanted.get_size()));
    prepared = memory(operand.wanted, dnn_engine(), buffer->get());
    prepare(frame, operand, pass == Pass::kWeight ? whole.x : whole.w, prepared, pass == Pass::kWeight ? 1 : kBlock);
  }
  const auto range = [&](int64_t begin, int64_t end) {
    const DnnCall call;
    std::optional<Worker> worker;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t piece = i / cut.slices;
      const bool tail = piece == cut.pieces - 1 && &plan != &last;
      if (!worker || tail) worker.emplace(tail ? last : plan, pass, prepares ? &prepared : nullptr);
      worker->run(at(whole, pass, problem.whole, piece * cut.images, i % cut.slices, problem.c));
    }
  };
  if (count == 1) return range(0, 1);
  plugin::parallel_for(frame, 0, count, 1, range);
}

bool attempt(const bp_frame* frame, Pass pass, const Convolution& c, bool winograd, const Operands& operands) {
  const Cut cut = cut_of(pass, c, std::max<int64_t>(frame->host->worker_count(), 1));
  const int64_t tail = c.images - (cut.pieces - 1) * cut.images;
  const Problem problem = problem_of(pass, c, cut, cut.images, winograd);
  const auto plan = plan_of(problem);
  const auto last = tail == cut.images ? plan : plan_of(problem_of(pass, c, cut, tail, winograd));
  if (!plan || !last) return false;
  const int shared = kShared[static_cast<int>(pass)];
  // A smaller piece may want what all share in another layout.
  if (pass != Pass::kWeight && plan->operands[shared].wanted != last->operands[shared].wanted) return false;
  run(frame, problem, cut, *plan, *last, operands);
  return true;
}

}  // namespace

bool dnn_conv2d(const bp_frame* frame, Pass pass, const Convolution& c, const float* a, const float* b, float* out) {
  if (c.images * c.groups * c.work() < (c.groups > 1 ? kLeastGroupedWork : kLeastWork)) return false;
  // A block of channels would be mostly padding.
  if (pass == Pass::kInput && c.groups == 1 && c.channels < kBlock / 2) return false;
  float *first = const_cast<float*>(a), *second = const_cast<float*>(b);
  const Operands operands = pass == Pass::kForward ? Operands{first, second, out}
                            : pass == Pass::kInput ? Operands{out, second, first}
                                                   : Operands{second, out, first};
  if (suits_winograd(c) && attempt(frame, pass, c, true, operands)) return true;
  return attempt(frame, pass, c, false, operands);
}

}  // namespace backplane::cpu

#endif
