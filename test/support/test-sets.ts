/**
 * Tests whose files share two processes, one after the other: hundreds of small files would otherwise cost a process, and
 * the import of what they test, each. They start no server and no command line, change nothing global that they do not put
 * back, and measure no memory.
 */
export const TOGETHER = [
  'test/{base,callbacks,host,network}/**/*.test.ts',
  'test/engine/!(container-limits|worker-death).test.ts',
  'test/engine/{batch,building,decoding,encoder,guided,intake,loop,options,packed-call,peft,request,schemes,simulation,speculation,worker}/**/*.test.ts',
  'test/kvcache/**/*.test.ts',
  'test/models/*/**/*.test.ts',
  'test/scheduler/**/*.test.ts',
  'test/src/{commands,generation,hub,top}/**/*.test.ts',
  'test/src/server/*.test.ts',
  'test/src/serving/{cache,on-demand}/*.test.ts',
  'test/src/server/{anthropic,documentation,metrics,ollama,openai}/**/*.test.ts',
  'test/src/server/grpc/{infer,wire}/*.test.ts',
  'test/src/server/dashboard/{formation,page,schemes}/**/*.test.ts',
  'test/{loadgen,tools/compare,tools/support}/!(http-load|benchmark|https).test.ts',
];

/** Tests of what npm does not install: real models, clients of Python, browsers, TensorFlow. They run with `npm run test:all`. */
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
  'test/src/serving/{onnx-models,onnx-sequences,tensorflow-models}.test.ts',
  'test/src/clients/tritonclient{,-tensorflow}.test.ts',
  'test/src/clients/{anthropic-pip,ollama-pip,openai-pip,openai-pip-batches,openai-pip-responses,tool-calls}.test.ts',
  'test/src/clients/{matrix,pages,programs}/*.test.ts',
  'test/src/routing/*.test.ts',
  'test/src/server/dashboard/browser.test.ts',
  'test/src/queue/*.test.ts',
];

/**
 * Tests that take long by their nature: soaks, random histories, fuzzing, matrices over instruction sets and settings, whole programs that
 * crash and start again. They run with `npm run test:all`.
 */
export const LONG = [
  'test/bitwise/{adapters,all-at-once,attention-windows,drafts,everything,known-outputs,manager,not-finite-weights,post-processors,ranks,steered-ranks,tiny,worker-death}.test.ts',
  'test/callbacks/fair-queueing.test.ts',
  'test/conformance/{goldens,loop,rows}.test.ts',
  'test/engine/{builder-cache,combinations,generation-loop-crowd,hostile-builds,misbehaving-callbacks,watchdog-turns,worker-death}.test.ts',
  'test/engine/guided/sources/hostile-schemas.test.ts',
  'test/engine/guided/written/schemas-people-write.test.ts',
  'test/engine/executors/native/{attention-window,batch-invariance,draft-rejection,sampling}.test.ts',
  'test/engine/executors/native/kernels/*.test.ts',
  'test/engine/simulation/**/*.test.ts',
  'test/engine/speculation/drafts-in-a-crowd.test.ts',
  'test/host/links/*.test.ts',
  'test/host/simulation/*.test.ts',
  'test/host/ranks/{broken-connections,encoder-ranks,joined-ranks,launched-ranks}.test.ts',
  'test/kvcache/block-reuse-histories.test.ts',
  'test/loadgen/benchmark.test.ts',
  'test/models/wrong-values.test.ts',
  'test/models/checkpoints/fuzz.test.ts',
  'test/models/tokenizer/hostile-tokenizer.test.ts',
  'test/scheduler/{dynamic-batcher-histories,random-histories,sequence-batcher-histories}.test.ts',
  'test/src/{address-space,bench,bench-terminal,damaged-engine,hostile-guides,isolation,load,operations,several-models,simulate-batcher,simulate-workers,top-command}.test.ts',
  'test/src/batch/batch.test.ts',
  'test/src/clients/openai-types.test.ts',
  'test/src/clients/tool-formats/*.test.ts',
  'test/src/costs/*.test.ts',
  'test/src/disconnects/*.test.ts',
  'test/src/held/*.test.ts',
  'test/src/hub/pull.test.ts',
  'test/src/server/fuzz/*.test.ts',
  'test/src/server/hostile-tokenizer.test.ts',
  'test/src/server/kserve/fuzz.test.ts',
  'test/tools/{build-addon,dist-folder,guided-soak,native-packages,soak}.test.ts',
  'test/tools/{mutate/mutate-command,tests/second-runs}.test.ts',
  'test/{examples,package,package-types,readme}.test.ts',
];
