import type { Bench } from './bench.js';

/** A bench by its name: one line on what it measures, and its module, which is loaded when it is run. */
export interface BenchEntry {
  summary: string;
  load(): Promise<{ bench: Bench }>;
}

export const BENCHES: Readonly<Record<string, BenchEntry>> = {
  agreement: {
    summary: 'greedy tokens of each format and instruction set compared with transformers in float32',
    load: () => import('./agreement/bench.js'),
  },
  crowd: {
    summary: 'what hundreds of requests in one moment cost everybody else',
    load: () => import('./crowd/bench.js'),
  },
  dashboard: {
    summary: 'what the page at / costs: processor time of the server, frames of the browser',
    // It is compiled with the types of a browser's page, which the other benches are not: hence the hidden name.
    load: () => import('./dashboard/bench.js' as string),
  },
  'disk-cache': {
    summary: 'a prompt from the disk after a restart, compared with computed',
    load: () => import('./disk-cache/bench.js'),
  },
  encoder: {
    summary: 'texts a second of text encoders, compared with torch, ONNX Runtime, OpenVINO and llama-server',
    load: () => import('./encoder/bench.js'),
  },
  ensemble: {
    summary: 'what an ensemble costs over its parts, by the step',
    load: () => import('./ensemble/bench.js'),
  },
  executors: {
    summary: 'the executors of this machine compared with the native one, all in f32',
    load: () => import('./executors/bench.js'),
  },
  experts: {
    summary: 'a mixture larger than the memory of its process: the same bits, and the speed of the disk',
    load: () => import('./experts/bench.js'),
  },
  forms: {
    summary: 'first start and generation with each form of weights, compared with llama.cpp',
    load: () => import('./forms/bench.js'),
  },
  gateway: {
    summary: 'what a gateway of the work queue costs a request, with 10 to 10,000 workers',
    load: () => import('./gateway/bench.js'),
  },
  guided: {
    summary: 'what guides cost an iteration of 64 generating sequences',
    load: () => import('./guided/bench.js'),
  },
  http: {
    summary: 'what HTTP costs: the real server over an executor that computes nothing',
    load: () => import('./http/bench.js'),
  },
  infer: {
    summary: 'requests for tensors, compared with other servers of the Open Inference Protocol',
    load: () => import('./infer/bench.js'),
  },
  isolate: {
    summary: 'what an engine in a process of its own costs compared with one in a thread',
    load: () => import('./isolate/bench.js'),
  },
  iteration: {
    summary: 'one iteration of the native executor, split by kind of operation',
    load: () => import('./iteration/bench.js'),
  },
  kernel: {
    summary: 'kernels compared with a register-only loop and plain reading',
    load: () => import('./kernel/bench.js'),
  },
  kv: {
    summary: 'generation with each type of the KV cache',
    load: () => import('./kv/bench.js'),
  },
  loadgen: {
    summary: 'what the load generator itself can do, compared with other generators',
    load: () => import('./loadgen/bench.js'),
  },
  'long-prompt': {
    summary: "what users notice of a neighbour's very long prompt",
    load: () => import('./long-prompt/bench.js'),
  },
  lora: {
    summary: 'steps with LoRA adapters compared with steps without, and compared with llama.cpp',
    load: () => import('./lora/bench.js'),
  },
  models: {
    summary: 'what two models in one process take from each other',
    load: () => import('./models/bench.js'),
  },
  mtp: {
    summary: "what drafts of a model's own head bring, at the acceptance that a trained one would have",
    load: () => import('./mtp/bench.js'),
  },
  observing: {
    summary: 'what logs, metrics and traces cost a request for tensors',
    load: () => import('./observing/bench.js'),
  },
  overlap: {
    summary: 'generation with two micro-batches in turns (enableTrtOverlap) and without',
    load: () => import('./overlap/bench.js'),
  },
  pictures: {
    summary: 'a picture from its file to the numbers of a vision tower, by step and family of models',
    load: () => import('./pictures/bench.js'),
  },
  prefill: {
    summary:
      'long prompts on a worker of their own: what the hand-over costs, and what streams next to them notice',
    load: () => import('./prefill/bench.js'),
  },
  prompts: {
    summary: 'what prompts reach of what the instructions give, and what attention takes of them',
    load: () => import('./prompts/bench.js'),
  },
  quality: {
    summary: 'perplexity and KL divergence compared with llama.cpp on the same files',
    load: () => import('./quality/bench.js'),
  },
  queue: {
    summary:
      'what gateway, queue and worker cost compared with one server, and how soon a lost worker is replaced',
    load: () => import('./queue/bench.js'),
  },
  'queue-routing': {
    summary:
      'what a gateway finds in the caches of its workers, and how soon answers begin, with --routing cache and any',
    load: () => import('./queue-routing/bench.js'),
  },
  ranks: {
    summary: 'ranks and stages of one machine compared with one process with as many threads',
    load: () => import('./ranks/bench.js'),
  },
  routing: {
    summary:
      'requests that share beginnings, sent at random and by caches, to simulated workers and real ones',
    load: () => import('./routing/bench.js'),
  },
  sampling: {
    summary: 'what choosing tokens costs compared with an iteration of 64 sequences',
    load: () => import('./sampling/bench.js'),
  },
  schemes: {
    summary: 'V1, in-flight and fused in-flight batching under Poisson arrivals',
    load: () => import('./schemes/bench.js'),
  },
  speculation: {
    summary: 'what prompt lookup and draft models bring, and what they cost',
    load: () => import('./speculation/bench.js'),
  },
  start: {
    summary: 'how long a start of skein serve takes, on what, and the memory it holds',
    load: () => import('./start/bench.js'),
  },
  states: {
    summary: 'steps of models with states, the share of scans, and what a sequence keeps',
    load: () => import('./states/bench.js'),
  },
  stored: {
    summary: 'weights of a GGUF as they lie (--no-panels) compared with packed ones',
    load: () => import('./stored/bench.js'),
  },
  tools: {
    summary: 'what the number of functions in a request costs',
    load: () => import('./tools/bench.js'),
  },
  turns: {
    summary:
      'second turns of long chats: models with a state compared with models without, and compared with llama-server',
    load: () => import('./turns/bench.js'),
  },
  'vectors-compared': {
    summary: 'a model that generates and one that embeds in one server, each alone and together',
    load: () => import('./vectors-compared/bench.js'),
  },
};
