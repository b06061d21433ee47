// save and load: tensors, modules and optimisers in safetensors files, which Python's bp.save and bp.load share; and
// exported models.
#pragma once

#include "backplane/bp/compile.hpp"
#include "backplane/tensor_file.hpp"

namespace bp {

// Tensors by name, in the order of a file.
class StateDict : public std::vector<std::pair<std::string, Tensor>> {
 public:
  using std::vector<std::pair<std::string, Tensor>>::vector;
  using std::vector<std::pair<std::string, Tensor>>::operator[];

  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const Tensor& at(std::string_view name) const {
    const Tensor* found = find(name);
    BP_CHECK(found, VALUE, "StateDict: found no tensor of the name '", name, "'");
    return *found;
  }
  template <std::convertible_to<std::string_view> Name>
  const Tensor& operator[](const Name& name) const {
    return at(name);
  }

 private:
  const Tensor* find(std::string_view name) const {
    for (const auto& [own, tensor] : *this)
      if (own == name) return &tensor;
    return nullptr;
  }
};

inline void save(const StateDict& tensors, const std::string& path,
                 const std::map<std::string, std::string>& metadata = {}) {
  backplane::TensorFileContents contents{{}, metadata};
  for (const auto& [name, tensor] : tensors) contents.tensors.emplace_back(name, tensor.plain());
  backplane::save_tensor_file(path, contents);
}
template <std::same_as<std::map<std::string, Tensor>> M>
void save(const M& tensors, const std::string& path) {
  save(StateDict(tensors.begin(), tensors.end()), path);
}
// A single tensor gets the name "tensor"; the tensors of a list get their positions as names.
inline void save(const Tensor& tensor, const std::string& path) { save(StateDict{{"tensor", tensor}}, path); }
template <std::same_as<std::vector<Tensor>> V>
void save(const V& tensors, const std::string& path) {
  StateDict named;
  for (size_t i = 0; i < tensors.size(); ++i) named.emplace_back(std::to_string(i), tensors[i]);
  save(named, path);
}
// An object with a state_dict(): a module or an optimiser.
template <class T>
requires requires(const T& x) {
  { x.state_dict() } -> std::convertible_to<StateDict>;
}
void save(const T& object, const std::string& path) { save(object.state_dict(), path); }
template <class T>
requires requires(const T& x) {
  { x->state_dict() } -> std::convertible_to<StateDict>;
}
void save(const T& object, const std::string& path) { save(object->state_dict(), path); }

// The tensors of a file. Of a nested container that Python saved, they have the names of their places:
// "layers.0.weight".
inline StateDict load(const std::string& path, Device device = backplane::default_device()) {
  StateDict tensors;
  for (auto& [name, tensor] : backplane::load_tensor_file(path, device).tensors)
    tensors.emplace_back(name, Tensor(std::move(tensor)));
  return tensors;
}
inline void load(Tensor& tensor, const std::string& path) {
  const StateDict found = load(path);
  BP_CHECK(found.size() == 1, VALUE, "load: ", path, ": found ", found.size(), " tensors, expected 1");
  tensor = found.front().second;
}
inline void load(std::vector<Tensor>& tensors, const std::string& path) {
  tensors.clear();
  for (const auto& [name, tensor] : load(path)) tensors.push_back(tensor);
}
// Into a module or an optimiser, in place. Throws if names or shapes differ.
template <class T>
requires requires(T& x, const StateDict& state) { x.load_state_dict(state); }
void load(T& object, const std::string& path) { object.load_state_dict(load(path)); }
template <class T>
requires requires(const T& x, const StateDict& state) { x->load_state_dict(state); }
void load(const T& object, const std::string& path) { object->load_state_dict(load(path)); }

// The results of a model: a list, and where it is one tensor, this tensor.
class Outputs : public std::vector<Tensor> {
 public:
  using std::vector<Tensor>::vector;
  operator Tensor() const { return only(); }
  const Tensor& only() const {
    BP_CHECK(size() == 1, VALUE, "Model: found ", size(), " results where one tensor is expected. Fix: index them");
    return front();
  }
};

// A model that export wrote, in Python (bp.export) or in C++ (export_model).
class Model {
 public:
  static Model load(const std::string& path, std::optional<Device> device = {}) {
    return Model(backplane::load_graph(path, device ? std::optional<bp_device>(*device) : std::nullopt), path);
  }

  template <class... A>
  requires(std::is_convertible_v<const A&, Tensor>&&...) Outputs operator()(const A&... inputs) const {
    return (*this)(std::vector<Tensor>{Tensor(inputs)...});
  }
  Outputs operator()(const std::vector<Tensor>& inputs) const {
    const size_t expected = graph_.inputs().size();
    BP_CHECK(inputs.size() == expected, TYPE, "Model: ", path_, ": found ", inputs.size(), " inputs, expected ",
             expected);
    const std::vector<Generator*> drawn(graph_.generators().size(), &default_generator());
    Outputs outputs;
    for (backplane::Tensor& result : graph_.call(detail::plain(inputs), drawn)) outputs.emplace_back(std::move(result));
    return outputs;
  }
  Outputs forward(const std::vector<Tensor>& inputs) const { return (*this)(inputs); }
  const backplane::Graph& graph() const noexcept { return graph_; }  // its inputs(), outputs() and text()

 private:
  Model(backplane::Graph graph, std::string path) : graph_(std::move(graph)), path_(std::move(path)) {}

  backplane::Graph graph_;
  std::string path_;
};

}  // namespace bp
