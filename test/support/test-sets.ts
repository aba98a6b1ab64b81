/**
 * Tests with a process of their own: they measure the memory of their process, replace a module, or change or look at what a process
 * has once, such as its threads, its addons and its environment. All other files share two processes, one after the other: a
 * process, and the import of what they test, would otherwise cost a second of processor time for each. They put back what they
 * change, and stop what they start.
 */
export const APART = [
  'test/engine/container-limits.test.ts',
  'test/engine/backends/loop-watch.test.ts',
  'test/engine/executors/{chunk-times,executor-faults,thread-places}.test.ts',
  'test/engine/executors/native/{begin-finish,executor-lifecycle,find-addon,load-addon}.test.ts',
  'test/engine/executors/tensorflow/thread-claim.test.ts',
  'test/engine/executors/wasm/{wasm-experts,wasm-memory}.test.ts',
  'test/engine/ranks/memory.test.ts',
  'test/src/options/one-table.test.ts',
  'test/src/server/batches/cancelled-batches.test.ts',
  'test/tools/sanitize.test.ts',
];

/** Tests of what npm does not install: real models, clients of Python, browsers, TensorFlow, ONNX, NATS. They run with `npm run test:all`. */
export const OUTSIDE = [
  'test/src/clients/histories/*.test.ts',
  'test/bitwise/{encoders,smollm2,smollm2-drafts,smollm2-known-outputs,smollm2-ranks}.test.ts',
  'test/conformance/{encoders,smollm2}.test.ts',
  'test/engine/guided/written/pydantic.test.ts',
  'test/engine/executors/tensorflow/{faults,faults-manager,leaks,product-type,tensorflow-runner}.test.ts',
  'test/loadgen/report-page.test.ts',
  'test/models/jinja/beside-jinja2.test.ts',
  'test/reference/{beams,encoders,lora-smollm2,smollm2}.test.ts',
  'test/src/gpu-memory.test.ts',
  'test/src/serve-encoder.test.ts',
  'test/src/serving/{onnx-models,onnx-ragged,onnx-sequences,tensorflow-models}.test.ts',
  'test/src/clients/tritonclient{,-tensorflow}.test.ts',
  'test/src/clients/{anthropic-pip,ollama-pip,openai-pip,openai-pip-batches,openai-pip-mcp,openai-pip-responses,pictures,tool-calls}.test.ts',
  'test/src/clients/{matrix,pages,programs}/*.test.ts',
  'test/src/routing/*.test.ts',
  'test/src/server/{batches/shared-batches,dashboard/browser,files/struck-stores,openai/responses/shared-responses}.test.ts',
  'test/src/queue/*.test.ts',
];

/**
 * Tests that take long by their nature: soaks, random histories, fuzzing, matrices over instruction sets, families, settings and recorded
 * answers, whole programs that are started many times, or crash and start again. They run with `npm run test:all`.
 */
export const LONG = [
  'test/bitwise/{adapters,all-at-once,attention-windows,drafts,embedders,everything,guides,known-outputs,manager,not-finite-weights,post-processors,ranks,several-sequences,states,steered-ranks,tiny,worker-death}.test.ts',
  'test/callbacks/fair-queueing.test.ts',
  'test/conformance/{contract,experts,families,goldens,http,loop,pictures,rows,states}.test.ts',
  'test/engine/{builder-cache,combinations,generation-loop-crowd,hostile-builds,misbehaving-callbacks,watchdog-turns,worker-death}.test.ts',
  'test/engine/building/source-weights.test.ts',
  'test/engine/guided/sources/hostile-schemas.test.ts',
  'test/engine/guided/written/{everyday-schemas,schemas-people-write}.test.ts',
  'test/engine/backends/module/module-faults.test.ts',
  'test/engine/executors/adapter-leaks.test.ts',
  'test/engine/executors/native/{attention-window,batch-invariance,draft-rejection,sampling}.test.ts',
  'test/engine/executors/native/kernels/*.test.ts',
  'test/engine/executors/wasm/{block-access,wasm-products,wasm-runner}.test.ts',
  'test/engine/kinds/wasm-kind.test.ts',
  'test/engine/simulation/**/*.test.ts',
  'test/engine/speculation/drafts-in-a-crowd.test.ts',
  'test/host/links/*.test.ts',
  'test/host/resumption.test.ts',
  'test/cluster/simulation/*.test.ts',
  'test/host/ranks/{broken-connections,encoder-ranks,joined-ranks,launched-ranks,micro-batches,resumed-ranks}.test.ts',
  'test/kvcache/block-reuse-histories.test.ts',
  'test/loadgen/benchmark.test.ts',
  'test/src/commands/{bench-quick,broken-folder}.test.ts',
  'test/models/{demo-model,wrong-values}.test.ts',
  'test/models/checkpoints/fuzz.test.ts',
  'test/models/images/mutated-files.test.ts',
  'test/models/checkpoints/quantized/fuzz.test.ts',
  'test/models/tokenizer/hostile-tokenizer.test.ts',
  'test/models/towers/gguf-towers.test.ts',
  'test/reference/{architectures,embedders,families,lora-merged,towers}.test.ts',
  'test/scheduler/{tokens/random-histories,tensors/dynamic-batcher-histories,tensors/sequence-batcher-histories}.test.ts',
  'test/src/{address-space,bench,bench-terminal,damaged-engine,generation-config,hostile-guides,isolation,chat-command,load,model-crowds,new-command,operations,rank-command,run-command,serve,serve-adapters,serve-on-demand,several-models,simulate-batcher,simulate-workers,stalled-log,top-command,without-addon}.test.ts',
  'test/src/batch/batch.test.ts',
  'test/src/clients/{ollama-npm,openai-npm-batches,openai-npm-responses,openai-types}.test.ts',
  'test/src/clients/tool-formats/*.test.ts',
  'test/src/costs/*.test.ts',
  'test/src/disconnects/*.test.ts',
  'test/src/held/*.test.ts',
  'test/src/hub/pull.test.ts',
  'test/src/server/fuzz/*.test.ts',
  'test/src/server/hostile-tokenizer.test.ts',
  'test/src/server/kserve/{batch-goldens,ensemble-goldens,fuzz,sequence-goldens}.test.ts',
  'test/src/serving/{generate-cancelling,module-models}.test.ts',
  'test/tools/{build-addon,dist-folder,guided-soak,native-packages,soak}.test.ts',
  'test/tools/{bench/main,compare/shape/random-gguf,mutate/mutate-command,published-models,tests/second-runs}.test.ts',
  'test/{examples,package,package-types,readme}.test.ts',
];

/**
 * Those of `npm run test:all` with a process of their own, for the reasons of APART or because they kill workers, lose devices or end processes
 * of this one. All others share two processes, as those of `npm test` do.
 */
export const MORE_APART = [
  'test/bitwise/worker-death.test.ts',
  'test/engine/executors/adapter-leaks.test.ts',
  'test/engine/{misbehaving-callbacks,watchdog-turns,worker-death}.test.ts',
  'test/engine/executors/tensorflow/{faults,faults-manager,leaks,product-type,tensorflow-runner}.test.ts',
  'test/host/links/*.test.ts',
  'test/host/ranks/{broken-connections,encoder-ranks,joined-ranks,launched-ranks}.test.ts',
  'test/loadgen/benchmark.test.ts',
  // Three seconds of processor time in a process of its own, and forty in one that has run hundreds of files.
  'test/reference/embedders.test.ts',
  'test/src/{address-space,gpu-memory,isolation,load,operations}.test.ts',
  'test/src/clients/{anthropic-pip,tritonclient}.test.ts',
  'test/src/{costs,disconnects,held}/*.test.ts',
  'test/src/queue/{faults,learned-adapters}.test.ts',
  'test/tools/{build-addon,dist-folder,guided-soak,native-packages,soak}.test.ts',
  'test/{examples,package,package-types,readme}.test.ts',
];
