// Files of tensors: written tensors come back to the bit, and damaged files are refused with their name.
#include "graph/files/safetensors.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "backplane/device.hpp"
#include "backplane/tensor_file.hpp"
#include "null_backend.hpp"

namespace backplane::core::graph {
namespace {

using backplane::testing::null_backend;

class TensorFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("safetensors_test." + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return (folder_ / "t.safetensors").string(); }
  // A header, and as many bytes of data.
  std::string file(const std::string& header, size_t data, uint64_t length_too_large = 0) const {
    std::ofstream out(path(), std::ios::binary);
    const uint64_t length = header.size() + length_too_large;
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header << std::string(data, 'x');
    return path();
  }
  std::string refusal(const std::string& path) const {
    try {
      TensorFile read(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_;
};

TEST_F(TensorFiles, EveryDtypeComesBackToTheBit) {
  std::vector<NamedTensor> written;
  std::vector<std::vector<char>> bytes;
  for (bp_dtype dtype = 0; dtype < BP_DTYPE_COUNT; ++dtype) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {3}, {2, 0, 4}, {2, 3}}) {
      int64_t count = 1;
      for (const int64_t size : shape) count *= size;
      std::vector<char>& data = bytes.emplace_back(static_cast<size_t>(count * dtype_size(dtype)));
      for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(dtype == BP_BOOL ? i % 2 : 37 * i + dtype);
      written.push_back(
          {"t" + std::to_string(written.size()), from_host(data.data(), shape, {}, dtype, null_backend())});
    }
  }
  write_tensor_file(path(), written, {{"key", "a \"value\""}});
  TensorFile file(path());
  EXPECT_EQ(file.metadata().at("key"), "a \"value\"");
  ASSERT_EQ(file.tensors().size(), written.size());
  for (size_t i = 0; i < written.size(); ++i) {
    const StoredTensor* stored = file.find(written[i].name);
    ASSERT_TRUE(stored);
    const Tensor read = file.read(*stored, written[i].tensor.dtype(), written[i].tensor.shape(), null_backend());
    std::vector<char> data(read.get()->nbytes);
    to_host(read, data.data());
    EXPECT_EQ(data, bytes[i]) << written[i].name;
  }
  EXPECT_EQ(file.find("none"), nullptr);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(TensorFiles, ATensorIsReadAsWhatItIs) {
  write_tensor_file(path(), std::vector<NamedTensor>{{"a", backplane::testing::tensor({1, 2}, {2})}}, {});
  TensorFile file(path());
  const int64_t three[] = {3}, two[] = {2}, one[] = {1};
  EXPECT_THROW(file.read(file.tensors()[0], BP_FLOAT64, three, null_backend()), Error);
  EXPECT_THROW(file.read(file.tensors()[0], BP_INT64, two, null_backend()), Error);
  EXPECT_THROW(file.read(file.tensors()[0], BP_COMPLEX128, two, null_backend()), Error);
  const Tensor pair = file.read(file.tensors()[0], BP_COMPLEX128, Shape(one, 0), null_backend());
  EXPECT_EQ(pair.dtype(), BP_COMPLEX128);
}

TEST_F(TensorFiles, AReaderReadsOneByOne) {
  const double pair[] = {3, 4};
  const int64_t none[] = {0};
  const Tensor z = from_host(pair, Shape(none, 0), {}, BP_COMPLEX128, null_backend());
  save_tensor_file(path(), {{{"z", z}, {"a", backplane::testing::tensor({1, 2}, {2})}}, {{"key", "value"}}});
  const TensorFileReader reader(path());
  EXPECT_EQ(reader.metadata(), (std::map<std::string, std::string>{{"key", "value"}}));
  ASSERT_EQ(reader.size(), 2);
  EXPECT_EQ(reader.name(reader.find("a")), "a");
  EXPECT_EQ(reader.find("none"), -1);
  double found[2];
  to_host(reader.read(reader.find("a"), null_backend()), found);
  EXPECT_EQ(found[1], 2);
  const Tensor back = reader.read(reader.find("z"), null_backend());
  EXPECT_EQ(back.dtype(), BP_COMPLEX128);
  to_host(back, found);
  EXPECT_EQ(found[0], 3);
  EXPECT_EQ(found[1], 4);
  EXPECT_THROW(reader.read(2, null_backend()), Error);
  EXPECT_THROW(reader.read(-1, null_backend()), Error);
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) - 1);
  EXPECT_THROW(reader.read(reader.find("a"), null_backend()), Error);
}

TEST_F(TensorFiles, NamesOfComplexTensorsAreChecked) {
  for (const char* names : {R"([\"none\"])", R"([\"a\"])", R"(1)", R"([)"}) {
    const std::string notes = std::string(R"("__metadata__":{"backplane.complex":")") + names + R"("})";
    const std::string whole = "{" + notes + R"(,"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})";
    EXPECT_THROW(TensorFileReader(file(whole, 12)), Error) << names;
  }
}

TEST_F(TensorFiles, DamagedOnesAreRefused) {
  struct Case {
    const char* header;
    size_t data;
    const char* says;
  };
  const Case cases[] = {
      {"", 0, "not a JSON object"},
      {"[]", 0, "not a JSON object"},
      {"{", 0, "not JSON"},
      {R"({"a":{"b":{"c":{"d":{"e":{}}}}}})", 0, "deep"},
      {R"({"a":1})", 0, "tensor \"a\""},
      {R"({"a":{"dtype":"F31","shape":[],"data_offsets":[0,4]}})", 4, "dtype"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "size -1"},
      {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "size 1.5"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})", 4, "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[4,0]}})", 4, "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 3, "cut off"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 5, "but its tensors take 4"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[4,8]}})", 8, "expected 0"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
       4, "begins at byte 0"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
       4, "twice"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4],"dtype":"F32"}})", 4, "dtype twice"},
      {R"({"a":{"dtype":"F32","shape":[]}})", 4, "found no data_offsets"},
      {R"({"a":{"dtype":"F32","shape":{},"data_offsets":[0,4]}})", 4, "its shape is not a list"},
      {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "size [...]"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4,4]}})", 4, "not two positions"},
      {R"({"a":{"dtype":["F32"],"shape":[],"data_offsets":[0,4]}})", 4, "dtype [...]"},
      {R"({"a":[]})", 0, "tensor \"a\""},
      {R"({"__metadata__":{"k":"1","k":"2"}})", 0, "twice"},
      {R"({"__metadata__":{"k":["1"]}})", 0, "not a string"},
      {R"({"__metadata__":1})", 0, "not an object"},
      {R"({"__metadata__":{"k":1}})", 0, "not a string"},
      {R"({"__metadata__":[]})", 0, "not an object"},
  };
  for (const Case& c : cases) {
    const std::string said = refusal(file(c.header, c.data));
    EXPECT_NE(said.find(c.says), std::string::npos) << c.header << "\n" << said;
    EXPECT_EQ(said.find(path()), 0u) << said;
  }
  EXPECT_NE(refusal(file("{}", 0, 1)).find("cut off"), std::string::npos);
  EXPECT_NE(refusal(file("{}", 0, uint64_t{1} << 60)).find("cut off"), std::string::npos);
  EXPECT_NE(refusal(path() + ".none").find("cannot be read"), std::string::npos);
  EXPECT_NE(refusal(folder_.string()).find("cannot be read"), std::string::npos);
}

TEST_F(TensorFiles, WhatCannotBeWrittenLeavesNothing) {
  const Tensor a = backplane::testing::tensor({1}, {1});
  EXPECT_THROW(write_tensor_file((folder_ / "none" / "t").string(), std::vector<NamedTensor>{{"a", a}}, {}), Error);
  EXPECT_THROW(write_tensor_file(path(), std::vector<NamedTensor>{{"a", a}, {"a", a}}, {}), Error);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace backplane::core::graph
