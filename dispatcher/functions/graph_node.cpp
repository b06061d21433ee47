#include "functions/graph_node.hpp"

#include "levels/inplace.hpp"
#include "memory/process/epoch.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"
#include "tape/engine.hpp"
#include "tape/node.hpp"

namespace backplane::core {
namespace {

struct ResultMeta {
  explicit ResultMeta(const Tensor& t)
      : device(t.device()), dtype(t.dtype()), shape(t.shape().begin(), t.shape().end()) {}
  Tensor zeros() const { return filled(shape, 0.0, dtype, device); }
  bp_device device;
  bp_dtype dtype;
  std::vector<int64_t> shape;
};

// The tape records, whatever the backward pass that runs has set, for a scope.
class RecordOnTape {
 public:
  RecordOnTape() : disabled_(thread_state.grad_disabled), excluded_(thread_state.excluded_keys), record_(nullptr) {
    thread_state.grad_disabled = false;
    thread_state.excluded_keys &= ~kTapeKey;
  }
  ~RecordOnTape() {
    thread_state.grad_disabled = disabled_;
    thread_state.excluded_keys = excluded_;
  }
  RecordOnTape(const RecordOnTape&) = delete;

 private:
  bool disabled_;
  uint64_t excluded_;
  NoteOnTape record_;
};

std::vector<Version> versions_of(Args tensors) {
  std::vector<Version> versions;
  for (const Tensor& t : tensors) versions.emplace_back(t);
  return versions;
}

// What both kinds keep.
class Step : public GraphStep {
 public:
  Step(GraphRun& run, const std::vector<Tensor>& results) : function_(run.function), random_(std::move(run.random)) {
    for (const Tensor& t : results) metas_.emplace_back(t);
  }

 protected:
  const std::string& name() const { return function_->name(); }
  const char* c_name() const { return function_->name().c_str(); }

  // Where none has arrived, what the function takes for a zero; empty for results without a derivative.
  std::vector<Tensor> complete(const bp_value* cotangents) const {
    const bool empty_zeros = function_->takes_empty_zeros();
    std::vector<Tensor> all;
    for (size_t j = 0; j < metas_.size(); ++j)
      all.push_back(cotangents[j].tag == BP_TAG_TENSOR            ? Tensor::share(cotangents[j].u.t)
                    : !empty_zeros && is_inexact(metas_[j].dtype) ? metas_[j].zeros()
                                                                  : Tensor());
    return all;
  }

  std::shared_ptr<GraphFunction> function_;
  RandomLog random_;
  std::vector<ResultMeta> metas_;
};

class CheckpointStep final : public Step {
 public:
  CheckpointStep(GraphRun& run, const std::vector<Tensor>& results, Captures& captures)
      : Step(run, results), captured_(std::move(captures.versions)) {
    if (run.level) {
      serial_ = run.level->serial;
      transform_ = run.level->transform;
    }
    args_ = versions_of(run.inner);
    for (const Tensor& t : run.outer) {
      const TensorImpl* outer = impl(t);
      const bool wanted = run.level ? outer->node && wrapper_of(*run.level, outer) : false;
      edge_of_arg_.push_back(wanted ? captures.find({outer->node, outer->node_output}) : -1);
    }
  }

  void backward(Node* node, const bp_value* cotangents, std::vector<Tensor>& out, bool create_graph) override {
    for (const Version& v : args_) v.check(name());
    for (const Version& v : captured_) v.check(name());
    std::vector<Edge> all;
    struct Release {
      std::vector<Edge>& edges;
      ~Release() {
        for (const Edge& edge : edges) release_edge(edge);
      }
    } release_at_end{all};
    run_again(node, all);
    std::vector<Edge> roots;
    std::vector<TensorImpl*> seeds;
    for (size_t j = 0; j < all.size(); ++j) {
      if (!all[j].node || cotangents[j].tag != BP_TAG_TENSOR) continue;
      roots.push_back(all[j]);
      seeds.push_back(impl(cotangents[j].u.t));
    }
    if (roots.empty()) return;
    const std::span<const Edge> inputs(node->edges(), node->n_edges);
    run_backward({roots, seeds, inputs, &out, create_graph, create_graph, true});
  }

  void release() noexcept override {
    args_.clear();
    captured_.clear();
  }
  void visit(OwnedVisitor& visitor) const override { visitor.function(function_, nullptr); }

 private:
  // Appends an edge per result of a second run; its graph ends at the edges of the node.
  void run_again(Node* node, std::vector<Edge>& edges) {
    ReplayRandom replay(random_, c_name());
    std::vector<Tensor> args, results;
    if (serial_) {
      GradLevel level(transform_, serial_);
      for (size_t i = 0; i < args_.size(); ++i) args.push_back(entered(level, node, i));
      results = function_->call(args);
      check(results);
      for (const Tensor& t : results) {
        const Wrapper* wrapper = wrapper_of(level, impl(t));
        if (wrapper && impl(t)->view) refresh(impl(t));
        edges.push_back(wrapper ? edge_to(impl(t)) : Edge{nullptr, 0});
      }
    } else {
      RecordOnTape recording;
      for (const Version& v : args_) args.push_back(v.tensor);
      results = function_->call(args);
      check(results);
      for (const Tensor& t : results) edges.push_back(edge_to(impl(t)));
    }
  }

  // An argument at the level, which is pushed again, with the history that it had.
  Tensor entered(const GradLevel& level, Node* node, size_t i) const {
    const Tensor& inner = args_[i].tensor;
    if (edge_of_arg_[i] < 0) return inner;
    retain(impl(inner));
    Tensor t = Tensor::adopt(wrap(level, impl(inner)));
    const Edge& edge = node->edges()[edge_of_arg_[i]];
    set_history(impl(t), edge.node, edge.output, 0);
    return t;
  }

  void check(const std::vector<Tensor>& results) const {
    BP_CHECK(results.size() == metas_.size(), VALUE, name(), ": running it again for the backward pass gives ",
             results.size(), " results, the first run gave ", metas_.size(), "; it must do the same each time");
  }

  uint64_t serial_ = 0;  // of the level; 0: the tape
  const char* transform_ = "";
  std::vector<Version> args_;
  std::vector<int32_t> edge_of_arg_;  // -1: a constant
  std::vector<Version> captured_;
};

class CustomStep final : public Step {
 public:
  CustomStep(GraphRun& run, GraphFunction::Forward& forward)
      : Step(run, forward.results),
        on_tape_(!run.level),
        moves_(std::move(forward.moves)),
        rest_(std::move(forward.residuals.rest)) {
    tensors_ = versions_of(forward.residuals.tensors);
    // On the tape the residuals have no history. Higher orders get one from a second forward run.
    args_ = versions_of(run.inner);
  }

  void backward(Node*, const bp_value* cotangents, std::vector<Tensor>& out, bool create_graph) override {
    const std::vector<Tensor> found = function_->backward(residuals(create_graph), complete(cotangents));
    BP_CHECK(found.size() == args_.size(), VALUE, name(), ": its backward rule returned ", found.size(),
             " cotangents; expected one per argument, ", args_.size());
    uint64_t given = 0;
    for (size_t j = 0; j < metas_.size(); ++j)
      if (cotangents[j].tag == BP_TAG_TENSOR) given |= GraphFunction::Forward::bit(j);
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i] || (!moves_.empty() && !(moves_[i] & given))) continue;
      const Tensor& arg = args_[i].tensor;
      BP_CHECK(same_shape(*found[i].get(), *arg.get()), SHAPE, name(), ": its backward rule returned cotangent ", i,
               " of shape ", shape_text(found[i].shape()), ", argument ", i, " has ", shape_text(arg.shape()),
               ". Fix: reduce it to the argument's shape. If the forward rule returned results of other shapes "
               "than the function, correct the forward rule");
      BP_CHECK(found[i].dtype() == arg.dtype() || !is_inexact(arg.dtype()), DTYPE, name(),
               ": its backward rule returned cotangent ", i, " of dtype ", kDtypeNames[found[i].dtype()], ", argument ",
               i, " is of ", kDtypeNames[arg.dtype()], "; cast it");
      out[i] = found[i];
    }
  }

  void release() noexcept override {
    args_.clear();
    tensors_.clear();
    rest_.reset();
  }
  void visit(OwnedVisitor& visitor) const override { visitor.function(function_, rest_); }

 private:
  GraphFunction::Residuals residuals(bool create_graph) const {
    if (on_tape_ && create_graph) {  // else the pass needs nothing of the arguments
      for (const Version& v : args_) v.check(name());
      RecordOnTape recording;
      ReplayRandom replay(random_, c_name());
      std::vector<Tensor> args;
      for (const Version& v : args_) args.push_back(v.tensor);
      return function_->forward(args).residuals;
    }
    GraphFunction::Residuals kept{{}, rest_};
    for (const Version& v : tensors_) {
      if (v.tensor) v.check(name());
      kept.tensors.push_back(v.tensor);
    }
    return kept;
  }

  bool on_tape_;
  std::vector<uint64_t> moves_;
  std::vector<Version> args_;
  std::vector<Version> tensors_;
  std::shared_ptr<const void> rest_;
};

// A node under construction.
class NewNode {
 public:
  NewNode(const GraphRun& run, size_t n_results, size_t n_edges, std::unique_ptr<GraphStep> step)
      : node_(new_node(Node::Kind::kGraph, static_cast<uint32_t>(n_edges), 0, 0)) {
    std::fill_n(node_->edges(), n_edges, Edge{nullptr, 0});
    node_->op = &run.op;
    step->n_results = static_cast<uint32_t>(n_results);
    node_->graph = step.release();
    lease(run.op.owner, LeaseKind::kNode);
  }
  ~NewNode() { release(node_); }
  NewNode(const NewNode&) = delete;

  // Takes over the edge's reference.
  void set_edge(size_t e, const Edge& edge) {
    node_->edges()[e] = edge;
    if (edge.node && edge.node->depth >= node_->depth) node_->depth = edge.node->depth + 1;
  }
  Node* get() const { return node_; }

 private:
  Node* node_;
};

// The results as the caller sees them. They are new handles: the function may have kept, or have been given, the old.
std::vector<Tensor> with_history(const GraphRun& run, Node* node, const std::vector<Tensor>& results,
                                 const std::vector<bool>& constant) {
  std::vector<Tensor> outer;
  for (size_t j = 0; j < results.size(); ++j) {
    TensorImpl* inner = impl(results[j]);
    TensorImpl* t;
    if (run.level) {
      retain(inner);
      t = wrap(*run.level, inner);
    } else {
      BP_CHECK(inner->storage, VALUE, run.function->name(), ": returned a tensor of a ",
               inner->wrapper ? inner->wrapper->transform : "transform", " that has ended");
      t = new_alias(*inner);
    }
    outer.push_back(Tensor::adopt(t));
    if (is_inexact(t->dtype) && (constant.empty() || !constant[j]))
      set_history(t, node, static_cast<uint32_t>(j), run.level ? 0 : kTapeKey);
  }
  return outer;
}

}  // namespace

std::vector<Tensor> record_checkpoint(GraphRun run, const std::vector<Tensor>& results, Captures& captures,
                                      const std::vector<bool>& constant) {
  auto step = std::make_unique<CheckpointStep>(run, results, captures);
  NewNode node(run, results.size(), captures.edges.size(), std::move(step));
  for (size_t e = 0; e < captures.edges.size(); ++e) node.set_edge(e, captures.edges[e]);
  captures.edges.clear();  // the node's now
  return with_history(run, node.get(), results, constant);
}

std::vector<Tensor> record_custom(GraphRun run, GraphFunction::Forward forward) {
  const std::vector<Tensor> results = forward.results;
  const std::vector<bool> constant = forward.constant;
  auto step = std::make_unique<CustomStep>(run, forward);
  NewNode node(run, results.size(), run.outer.size(), std::move(step));
  for (size_t e = 0; e < run.outer.size(); ++e) {
    TensorImpl* t = impl(run.outer[e]);
    if (run.level ? t->node && wrapper_of(*run.level, t) : wants_grad(t)) node.set_edge(e, edge_to(t));
  }
  return with_history(run, node.get(), results, constant);
}

}  // namespace backplane::core
