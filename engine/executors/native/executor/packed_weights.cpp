#include "executor/packed_weights.h"

#include "coded_error.h"
#include "executor/checksums.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <unordered_map>

namespace skein {
namespace {

// Version of this header, raised when it changes. The kernels' way of packing is part of the fingerprint.
constexpr uint32_t kPackedVersion = 3;
constexpr char kMagic[8] = {'S', 'K', 'E', 'I', 'N', 'P', 'K', '1'};

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  char instructionSet[16];
  uint64_t fileBytes;
  uint64_t fingerprint;
  // Checksum of all bytes after the first page, but for matrices of experts; 0 until they are known.
  uint64_t checksum;
};

Header headerOf(const KernelTable& kernels, uint64_t fileBytes, uint64_t fingerprint) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kPackedVersion;
  std::strncpy(header.instructionSet, kernels.name, sizeof header.instructionSet - 1);
  header.fileBytes = fileBytes;
  header.fingerprint = fingerprint;
  return header;
}

// Packs a known matrix both ways: kernels that pack differently, by panels or by blocks of k, give another fingerprint,
// so that a file of an older build is never misread.
void addPacking(Fingerprint& print, const KernelTable& kernels, DType dtype) {
  constexpr int32_t kRows = 67;
  const int32_t columns = isSuperblocked(dtype) ? 1024 : 1031;
  std::vector<uint16_t> matrix(size_t(2) * 2 * kRows * columns);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<uint16_t>(0x3F00 + i % 251);
  std::vector<uint8_t> packed(
      std::max(kernels.packedBytes(dtype, kRows, columns), kernels.packedGatedBytes(dtype, kRows, columns)));
  kernels.packWeights(dtype, matrix.data(), kRows, columns, packed.data());
  print.add(packed.data(), kernels.packedBytes(dtype, kRows, columns));
  kernels.packGatedWeights(dtype, matrix.data(), kRows, columns, packed.data());
  print.add(packed.data(), kernels.packedGatedBytes(dtype, kRows, columns));
}

void addText(Fingerprint& print, const std::string& text) {
  print.add(static_cast<int64_t>(text.size()));
  print.add(text.data(), text.size());
}

int64_t modificationTime(const struct stat& status) {
#if defined(__APPLE__)
  return int64_t(status.st_mtimespec.tv_sec) * 1000000000 + status.st_mtimespec.tv_nsec;
#else
  return int64_t(status.st_mtim.tv_sec) * 1000000000 + status.st_mtim.tv_nsec;
#endif
}

// Sets the file's size and reserves the disk's blocks too: a full disk is an error here and not a fault while packing.
bool reserveFile(int descriptor, size_t bytes) {
#if defined(__linux__)
  const int error = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  if (error == 0) return true;
  if (error != EOPNOTSUPP && error != EINVAL) return false;
#endif
  return ftruncate(descriptor, static_cast<off_t>(bytes)) == 0;
}

// A new file next to a path, which is removed at the end unless it was renamed. It is read-only from the start:
// truncating a file that a process has mapped kills that process.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& beside)
      : path_(nameBeside(beside)), file_(open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444)) {}
  ~TemporaryFile() {
    if (file_.valid() && !renamed_) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int get() const { return file_.get(); }
  const std::string& path() const { return path_; }
  void rename(const std::string& to) { renamed_ = std::rename(path_.c_str(), to.c_str()) == 0; }

 private:
  static std::string nameBeside(const std::string& path) {
    std::random_device random;
    const uint64_t number = (uint64_t(random()) << 32) | random();
    return path + "." + std::to_string(getpid()) + "-" + std::to_string(number) + ".tmp";
  }

  const std::string path_;
  const FileDescriptor file_;
  bool renamed_ = false;
};

// Checks that what lies in the checkpoint's file is the tensor, without opening the file.
void checkJobs(const WeightTensor& tensor, const std::string& name) {
  int64_t rows = 0;
  for (const ConvertJob& job : tensor.jobs) {
    if (job.columns != tensor.columns || job.targetType != tensor.dtype || job.rows > tensor.rows - rows) rows = -1;
    if (rows < 0) break;
    rows += job.rows;
  }
  if (rows != tensor.rows) throw std::runtime_error(name + " is not what its pieces of the model's file make.");
}

// True if a step reads the weight itself, and not only its panels.
bool isReadByRows(const NetworkPlan& plan, int32_t weight) {
  return std::any_of(plan.ops.begin(), plan.ops.end(), [&](const PlanOp& op) {
    return op.bias == weight || (op.weight == weight && productsOf(op).empty());
  });
}

void checkTensor(const WeightTensor& tensor, const PlanWeight& weight, const std::string& file, size_t fileBytes) {
  const std::string name = file + ": tensor " + weight.tensor;
  if (!weight.matrix && tensor.dtype != DType::kF32) throw std::runtime_error(name + " is a vector and must be f32.");
  const WeightFormat& format = formatOf(tensor.dtype);
  if (!format.made && tensor.columns % format.blockElements != 0) {
    throw std::runtime_error(name + " has rows of " + std::to_string(tensor.columns) +
                             " elements, which are no whole blocks of " + std::to_string(format.blockElements) + ".");
  }
  const size_t bytes =
      checkedProduct(static_cast<size_t>(tensor.rows), rowBytes(tensor.dtype, tensor.columns), "a tensor");
  if (tensor.byteLength < 0 || static_cast<size_t>(tensor.byteLength) != bytes) {
    throw std::runtime_error(name + " takes " + std::to_string(bytes) + " bytes, but its entry says " +
                             std::to_string(tensor.byteLength) + ".");
  }
  if (!tensor.jobs.empty()) return checkJobs(tensor, name);
  const size_t offset = static_cast<size_t>(tensor.offset);
  if (tensor.offset < 0 || offset % 64 != 0 || offset > fileBytes || bytes > fileBytes - offset) {
    throw std::runtime_error(name + " must lie within the file at a multiple of 64, but its " + std::to_string(bytes) +
                             " bytes begin at " + std::to_string(tensor.offset) + " and the file has " +
                             std::to_string(fileBytes) + ".");
  }
}

}  // namespace

PackedWeights::PackedWeights(const ExecutorConfig& config, const KernelTable& kernels)
    : weights_(mapWeights(config)), panelWidth_(kernels.panelWidth), tensors_(config.tensors) {
  for (const PlanWeight& weight : config.plan.weights) parts_.push_back(weight.parts);
  checkTensors(config);
  copyVectors(config);
  if (config.expertsFromDisk && !config.staysStored) fileOfExperts_ = config.packedFile;
  if (config.staysStored) stored_ = std::make_unique<StoredWeights>(config, weights_.data());
  else layOut(config, kernels);
}

Mapping PackedWeights::mapWeights(const ExecutorConfig& config) {
  if (!config.staysStored) return Mapping::readOnlyFile(config.weightsFile);
  Mapping held = Mapping::anonymous(config.held.size(), "Memory for the weights that are not in " + config.weightsFile);
  if (!config.held.empty()) std::memcpy(held.data(), config.held.data(), config.held.size());
  return held;
}

PackedWeights::PackedWeights(const ExecutorConfig& config, const KernelTable& kernels, ThreadPool& pool)
    : PackedWeights(config, kernels) {
  if (stored_ != nullptr) {
    stored_->willNeed();
    return;
  }
  const uint64_t print = fingerprint(config, kernels);
  if (!mapExisting(config.packedFile, print, kernels, pool)) {
    openSource(config.weightsFile);
    checkSlicedMatrices(config.weightsFile, pool);
    make(config, print, kernels, pool);
    sources_.clear();
  }
  // What is read from the disk has no place of its own.
  if (config.expertsFromDisk) return;
  packed_.willNeed();
  if (config.hasFarMemory) moveNear(pool);
}

void PackedWeights::provide() const {
  if (stored_ != nullptr) return stored_->provide();
  if (fileOfExperts_.empty()) return packed_.provide(0, packed_.size(), false);
  for (const MappedBytes& part : commonParts(packed_)) {
    packed_.provide(static_cast<size_t>(part.data - packed_.data()), part.bytes, false);
    adviseNormal(part);
  }
}

const uint8_t* PackedWeights::row(int32_t weight, int32_t row, std::vector<uint8_t>& converted) const {
  if (stored_ != nullptr) return stored_->row(part(weight, 0).tensor, row, converted);
  return tensorData(weight) + static_cast<size_t>(row) * rowBytes(dtype(weight), tensor(weight).columns);
}

std::vector<PackedPart> PackedWeights::packedFor(const OpProduct& product) const {
  const int32_t weight = product.weight;
  const bool gated = isGated(product);
  if (stored_ != nullptr) return storedFor(product);
  std::vector<PackedPart> parts;
  for (size_t i = static_cast<size_t>(firstEntry_[static_cast<size_t>(weight)][gated]); i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.weight != weight || entry.gated != gated) break;
    const DType type = tensor(weight, entry.part).dtype;
    parts.push_back({packed_.data() + entry.offset, type, entry.firstColumn, entry.n, entry.firstPanel});
  }
  return parts;
}

// Parts and panels are numbered as packed ones are: see layOutProduct().
std::vector<PackedPart> PackedWeights::storedFor(const OpProduct& product) const {
  const std::vector<WeightPart>& stored = parts_[static_cast<size_t>(product.weight)];
  std::vector<PackedPart> parts;
  int32_t column = 0, panel = 0;
  for (const WeightPart& one : stored) {
    const int32_t n = isGated(product) ? one.rows / 2 : one.rows;
    parts.push_back({nullptr, tensors_[one.tensor].dtype, column, n, panel, &stored_->matrix(one.tensor)});
    column += n;
    panel += (n + panelWidth_ - 1) / panelWidth_;
  }
  return parts;
}

std::vector<DType> PackedWeights::dtypes(int32_t weight) const {
  std::vector<DType> types;
  for (size_t i = 0; i < parts_[static_cast<size_t>(weight)].size(); ++i) types.push_back(tensor(weight, i).dtype);
  return types;
}

void PackedWeights::checkTensors(const ExecutorConfig& config) const {
  for (const PlanWeight& weight : config.plan.weights) {
    const int32_t index = static_cast<int32_t>(&weight - config.plan.weights.data());
    for (const WeightPart& part : weight.parts) {
      checkTensor(tensors_[part.tensor], weight, config.weightsFile, weights_.size());
      const bool mayStay = config.staysStored && weight.matrix;
      if (!tensors_[part.tensor].jobs.empty() && !mayStay && isReadByRows(config.plan, index)) {
        throw std::runtime_error(config.weightsFile + " must hold tensor " + weight.tensor +
                                 ", which a step reads by its rows.");
      }
    }
  }
}

// Copies the entries of vectors that a rank has.
void PackedWeights::copyVectors(const ExecutorConfig& config) {
  ownParts_.resize(config.plan.weights.size());
  for (size_t i = 0; i < config.plan.weights.size(); ++i) {
    const PlanWeight& weight = config.plan.weights[i];
    if (weight.matrix || weight.slices.empty()) continue;
    const uint8_t* whole = tensorData(static_cast<int32_t>(i));
    for (const WeightSlice& slice : weight.slices) {
      const uint8_t* from = whole + static_cast<size_t>(slice.first) * sizeof(float);
      ownParts_[i].insert(ownParts_[i].end(), from, from + static_cast<size_t>(slice.count) * sizeof(float));
    }
  }
}

void PackedWeights::layOut(const ExecutorConfig& config, const KernelTable& kernels) {
  packedBytes_ = kPage;
  firstEntry_.assign(config.plan.weights.size(), {-1, -1});
  for (const OpProduct& product : config.plan.packed) layOutProduct(product, kernels);
  for (const PlanOp& op : config.plan.ops)
    for (const OpProduct& product : productsOf(op)) layOutProduct(product, kernels);
  size_t sums = 0;
  for (Entry& entry : entries_)
    if (entry.isExpert) entry.sum = sums++;
  const size_t sumBytes = roundUp(sums * sizeof(uint64_t), kPage);
  for (Entry& entry : entries_) entry.offset += sumBytes;
  packedBytes_ += sumBytes;
}

void PackedWeights::layOutProduct(const OpProduct& product, const KernelTable& kernels) {
  const size_t weight = static_cast<size_t>(product.weight);
  const std::vector<WeightPart>& parts = parts_[weight];
  const bool gated = isGated(product);
  if (firstEntry_[weight][gated] >= 0) return;
  firstEntry_[weight][gated] = static_cast<int32_t>(entries_.size());
  int32_t column = 0, panel = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int32_t n = gated ? parts[i].rows / 2 : parts[i].rows;
    if (n == 0 && parts.size() > 1) continue;
    const WeightTensor& stored = tensor(product.weight, i);
    const int32_t k = static_cast<int32_t>(stored.columns);
    const size_t bytes = gated ? kernels.packedGatedBytes(stored.dtype, n, k) : kernels.packedBytes(stored.dtype, n, k);
    entries_.push_back({product.weight, gated, n, k, packedBytes_, bytes, i, column, panel, product.isExpert});
    packedBytes_ += entries_.back().pageBytes();
    column += n;
    panel += (n + kernels.panelWidth - 1) / kernels.panelWidth;
  }
}

uint64_t PackedWeights::fingerprint(const ExecutorConfig& config, const KernelTable& kernels) const {
  struct stat status{};
  if (stat(config.weightsFile.c_str(), &status) != 0) {
    throw std::runtime_error(config.weightsFile + " cannot be read (" + std::strerror(errno) + ").");
  }
  Fingerprint print;
  addText(print, kernels.name);
  print.add(kernels.panelWidth);
  for (const WeightFormat& format : kWeightFormats) {
    const auto hasType = [&](const Entry& entry) { return tensor(entry.weight, entry.part).dtype == format.dtype; };
    if (std::any_of(entries_.begin(), entries_.end(), hasType)) addPacking(print, kernels, format.dtype);
  }
  print.add(static_cast<int64_t>(status.st_size));
  // The time shows that the engine was made again, also where its matrices lie elsewhere.
  print.add(modificationTime(status));
  for (const Entry& entry : entries_) {
    const WeightTensor& stored = tensor(entry.weight, entry.part);
    addText(print, stored.name);
    for (const int64_t number : {int64_t(stored.dtype), stored.rows, stored.columns, stored.offset,
                                 int64_t(entry.gated), int64_t(entry.offset), int64_t(entry.bytes)}) {
      print.add(number);
    }
    for (const WeightSlice& slice : part(entry.weight, entry.part).slices) {
      print.add(int64_t(slice.first));
      print.add(int64_t(slice.count));
    }
  }
  return print.value();
}

bool PackedWeights::mapExisting(const std::string& path, uint64_t fingerprint, const KernelTable& kernels,
                                ThreadPool& pool) {
  if (access(path.c_str(), R_OK) != 0) return false;
  Mapping mapping = Mapping::readOnlyFile(path);
  if (mapping.size() != packedBytes_) return false;
  const bool readsAll = fileOfExperts_.empty();
  if (!readsAll) adviseRandom({mapping.data(), mapping.size()});
  Header expected = headerOf(kernels, packedBytes_, fingerprint);
  Header found;
  std::memcpy(&found, mapping.data(), sizeof found);
  expected.checksum = found.checksum;
  if (std::memcmp(&found, &expected, sizeof expected) != 0) return false;
  // Every page of the file is read before the first step anyway, but for experts on the disk. A file with a flipped bit counts as missing.
  if (readsAll) mapping.willNeed();
  else askForCommonParts(mapping);
  if (commonChecksum(mapping, pool) != found.checksum || (readsAll && !areExpertsWhole(mapping, pool))) return false;
  packed_ = std::move(mapping);
  return true;
}

void PackedWeights::openSource(const std::string& weightsFile) {
  sources_.resize(tensors_.size());
  // One for each part of a split file.
  std::unordered_map<std::string, std::shared_ptr<const PositionedFile>> files;
  for (const Entry& entry : entries_) {
    const size_t index = part(entry.weight, entry.part).tensor;
    const std::vector<ConvertJob>& jobs = tensors_[index].jobs;
    if (jobs.empty()) continue;
    try {
      std::shared_ptr<const PositionedFile>& file = files[jobs.front().source];
      if (file == nullptr) file = std::make_shared<PositionedFile>(jobs.front().source, PositionedFile::Role::kSource);
      sources_[index] = std::make_shared<SourceRows>(jobs, file);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(error.what()) + " Matrices of the engine of " +
                               weightsFile.substr(0, weightsFile.rfind('/')) +
                               " lie in this file: put it back as it was, or start with the model where it is now.");
    }
  }
}

[[noreturn]] void PackedWeights::refuse(const std::string& weightsFile, const Entry& entry) const {
  const std::vector<ConvertJob>& jobs = tensor(entry.weight, entry.part).jobs;
  throw CodedError(kWeightsChanged,
                   (jobs.empty() ? weightsFile : jobs.front().source) + ": the bytes of " + tensor(entry.weight).name +
                       " are not those that were built, the disk or a program has changed them; build the engine "
                       "again, or start again where it is of the cache, which builds it again.");
}

void PackedWeights::checkSlicedMatrices(const std::string& weightsFile, ThreadPool& pool) const {
  for (const Entry& entry : entries_) {
    const WeightTensor& stored = tensor(entry.weight, entry.part);
    if (stored.checksum < 0 || part(entry.weight, entry.part).slices.empty()) continue;
    const auto& source = sources_[part(entry.weight, entry.part).tensor];
    const uint32_t sum =
        source != nullptr ? checksumOf(*source, pool.threads())
                          : crc32Of(tensorData(entry.weight, entry.part), static_cast<size_t>(stored.byteLength), pool);
    if (sum != stored.checksum) refuse(weightsFile, entry);
  }
}

void PackedWeights::make(const ExecutorConfig& config, uint64_t fingerprint, const KernelTable& kernels,
                         ThreadPool& pool) {
  TemporaryFile file(config.packedFile);
  if (file.get() >= 0 && reserveFile(file.get(), packedBytes_) &&
      pack(config.weightsFile, {nullptr, file.get()}, kernels, pool)) {
    Mapping mapping = Mapping::readOnlyFile(file.path());
    if (!fileOfExperts_.empty()) adviseRandom({mapping.data(), mapping.size()});
    Header header = headerOf(kernels, packedBytes_, fingerprint);
    const std::vector<uint64_t> sums = expertSums(mapping, pool);
    const ssize_t sumBytes = static_cast<ssize_t>(sums.size() * sizeof(uint64_t));
    const bool hasSums = pwrite(file.get(), sums.data(), static_cast<size_t>(sumBytes), kPage) == sumBytes;
    header.checksum = commonChecksum(mapping, pool);
    // No caller waits until the bytes are on the disk: what a power cut has left out fails the checksum at the next
    // start, which makes the file again.
    if (hasSums && pwrite(file.get(), &header, sizeof header, 0) == sizeof header) file.rename(config.packedFile);
    packed_ = std::move(mapping);
    return;
  }
  if (config.expertsFromDisk)
    throw std::runtime_error(config.packedFile +
                             " cannot be written, from which experts that memory does not hold would be read; let the "
                             "folder be written to, on a disk with room for " +
                             std::to_string(packedBytes_) + " bytes.");
  // A read-only or full folder must not stop a server: the server then starts more slowly each time.
  packed_ = Mapping::anonymous(packedBytes_, "The packed weights (" + config.packedFile + " could not be written)");
  pack(config.weightsFile, {packed_.data()}, kernels, pool);
}

// Copies the weights into pages of this process. The system takes a page from the node of the thread that touches it first,
// and a product's panels are shared out evenly among the threads, in order:
//
//   an entry   | panels of thread 0 | of thread 1 | ... |
//
// A file's pages lie where its first reader ran.
void PackedWeights::moveNear(ThreadPool& pool) {
  Mapping near = Mapping::anonymous(packedBytes_, "The copy of the packed weights in near memory");
  pool.runOnEach([&](int32_t thread) {
    for (const Entry& entry : entries_) {
      const auto border = [&](int32_t at) {
        const size_t share = entry.bytes / static_cast<size_t>(pool.threads()) * static_cast<size_t>(at);
        return at == pool.threads() ? entry.bytes : share / kPage * kPage;
      };
      const size_t begin = entry.offset + border(thread), end = entry.offset + border(thread + 1);
      std::memcpy(near.data() + begin, packed_.data() + begin, end - begin);
    }
  });
  packed_ = std::move(near);
}

bool PackedWeights::pack(const std::string& weightsFile, const PackingTarget& target, const KernelTable& kernels,
                         ThreadPool& pool) {
  std::vector<MatrixToPack> matrices;
  for (const Entry& entry : entries_) {
    const WeightPart& rows = part(entry.weight, entry.part);
    const bool isHere = sources_[rows.tensor] == nullptr;
    matrices.push_back({tensor(entry.weight, entry.part).dtype, entry.gated, entry.n, entry.k,
                        isHere ? tensorData(entry.weight, entry.part) : nullptr, rows.slices, entry.offset,
                        sources_[rows.tensor]});
  }
  const std::vector<uint32_t> sums = packMatrices(matrices, kernels, pool, target);
  sums_.clear();
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!matrices[i].slices.empty()) continue;
    const int64_t expected = tensor(entries_[i].weight, entries_[i].part).checksum;
    if (expected >= 0 && sums[i] != expected) refuse(weightsFile, entries_[i]);
    if (matrices[i].source != nullptr) sums_.push_back({part(entries_[i].weight, entries_[i].part).tensor, sums[i]});
  }
  return !sums.empty() || matrices.empty();
}

}  // namespace skein
