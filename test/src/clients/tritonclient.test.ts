import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addSubModel } from '../serving/support/onnx-writer.js';
import { grpcAddress, type SkeinProcess, startServer } from '../support/skein-process.js';
import { testPython } from '../support/test-python.js';
import { Programs } from './pages/programs.js';

/** Triton's own examples: a model repository, and programs of its client. They are no part of this project. */
const triton = process.env.SKEIN_TEST_TRITON;

/** Programs of the HTTP client, and what they are started with. */
const HTTP_PROGRAMS: readonly (readonly [program: string, ...flags: string[]])[] = [
  ['simple_http_infer_client'],
  ['simple_http_async_infer_client'],
  ['simple_http_aio_infer_client'],
  ['simple_http_string_infer_client'],
  ['simple_http_health_metadata'],
  ['simple_http_shm_client'],
  ['simple_http_shm_string_client'],
  ['simple_http_model_control'],
  ['simple_http_sequence_sync_infer_client'],
  ['simple_http_sequence_sync_infer_client', '--dyna'],
];
/** The same of the gRPC client. */
const GRPC_PROGRAMS: readonly (readonly [program: string, ...flags: string[]])[] = [
  ['simple_grpc_infer_client'],
  ['simple_grpc_async_infer_client'],
  ['simple_grpc_aio_infer_client'],
  ['simple_grpc_string_infer_client'],
  ['simple_grpc_health_metadata'],
  ['simple_grpc_keepalive_client'],
  ['simple_grpc_custom_args_client'],
  ['simple_grpc_shm_client'],
  ['simple_grpc_shm_string_client'],
  ['simple_grpc_model_control'],
  ['simple_grpc_sequence_sync_infer_client'],
  ['simple_grpc_sequence_sync_infer_client', '--dyna'],
  ['simple_grpc_sequence_stream_infer_client'],
  ['simple_grpc_sequence_stream_infer_client', '--dyna'],
  ['simple_grpc_aio_sequence_stream_infer_client'],
  ['simple_grpc_aio_sequence_stream_infer_client', '--dyna'],
];
/** Models that the programs ask for by name or by number: one of them counts seven, and one of gRPC eight. */
const LISTED = [
  'simple',
  'simple_int8',
  'simple_string',
  'simple_identity',
  'simple_sequence',
  'simple_dyna_sequence',
  'of_our_own',
];
/** That of --dyna whose ids are texts is of Triton's own C++ code: it sums, and adds the id to the last sum. */
const DYNA_CONFIG = `max_batch_size: 8
input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
sequence_batching {
  max_sequence_idle_microseconds: 10000000
  oldest { max_candidate_sequences: 1024 }
  control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }
  state { input_name: "SUM" output_name: "NEW_SUM" data_type: TYPE_INT32 dims: [ 1 ] }
}
`;
const DYNA_MODULE = `export const execute = (requests) => requests.map(({ inputs: { INPUT, SUM, CORRID }, sequence: { end } }) => {
  const data = [SUM.data[0] + INPUT.data[0] + (end ? Number(CORRID.texts[0]) : 0)];
  return { outputs: { OUTPUT: { data }, NEW_SUM: { data } } };
});`;

const IDENTITY =
  'export const execute = (all) => all.map(({ inputs }) => ({ outputs: { OUTPUT0: inputs.INPUT0 } }));';

/** Stand-ins for models that are not among the examples. */
const STAND_INS = {
  repeat_int32: {
    config: `backend: module
max_batch_size: 0
input: [{name: IN, data_type: TYPE_INT32, dims: [-1]}, {name: DELAY, data_type: TYPE_UINT32, dims: [-1]}, {name: WAIT, data_type: TYPE_UINT32, dims: [1]}]
output: [{name: OUT, data_type: TYPE_INT32, dims: [1]}]
model_transaction_policy: {decoupled: true}
`,
    code: `export async function* execute([{ inputs: { IN, DELAY } }]) {
  for (const [i, x] of IN.data.entries()) {
    await new Promise((resolve) => setTimeout(resolve, DELAY.data[i] / 1000));
    yield [{ outputs: { OUT: { data: Int32Array.of(x) } } }];
  }
}`,
  },
  custom_identity_int32: {
    config: `backend: module
max_batch_size: 8
input: [{name: INPUT0, data_type: TYPE_INT32, dims: [-1]}]
output: [{name: OUTPUT0, data_type: TYPE_INT32, dims: [-1]}]
`,
    code: IDENTITY,
  },
};

/** Binary and JSON both ways, compression, classification, statistics, as the client's own API has them. */
const SCRIPT = `
import sys, json
import numpy as np
import tritonclient.http as http
client = http.InferenceServerClient(sys.argv[1])
a = np.arange(32, dtype=np.int32).reshape(2, 16)
b = np.ones((2, 16), dtype=np.int32)
found = []
for binary in (True, False):
    for compression in (None, "gzip", "deflate"):
        inputs = [http.InferInput("INPUT0", a.shape, "INT32"), http.InferInput("INPUT1", b.shape, "INT32")]
        inputs[0].set_data_from_numpy(a, binary_data=binary)
        inputs[1].set_data_from_numpy(b, binary_data=not binary)
        outputs = [http.InferRequestedOutput("OUTPUT0", binary_data=binary), http.InferRequestedOutput("OUTPUT1", binary_data=not binary)]
        result = client.infer("of_our_own", inputs, outputs=outputs, request_id="7",
            request_compression_algorithm=compression, response_compression_algorithm=compression)
        found.append([(result.as_numpy("OUTPUT0") == a + b).all() and (result.as_numpy("OUTPUT1") == a - b).all(), result.get_response()["id"]])
top = client.infer("of_our_own", inputs, outputs=[http.InferRequestedOutput("OUTPUT0", class_count=2)])
stats = client.get_inference_statistics("of_our_own")["model_stats"][0]
print(json.dumps({"same": [[bool(ok), id] for ok, id in found], "top": [[v.decode() for v in row] for row in top.as_numpy("OUTPUT0")],
    "count": stats["inference_count"], "live": client.is_server_live(), "metadata": client.get_server_metadata()["name"]}))
`;

/** The same over gRPC, and a stream. */
const GRPC_SCRIPT = `
import sys, json, queue
import numpy as np
import tritonclient.grpc as grpc
client = grpc.InferenceServerClient(sys.argv[1])
a = np.arange(32, dtype=np.int32).reshape(2, 16)
b = np.ones((2, 16), dtype=np.int32)
inputs = [grpc.InferInput("INPUT0", a.shape, "INT32"), grpc.InferInput("INPUT1", b.shape, "INT32")]
inputs[0].set_data_from_numpy(a)
inputs[1].set_data_from_numpy(b)
found = []
for compression in (None, "gzip", "deflate"):
    result = client.infer("of_our_own", inputs, request_id="7", compression_algorithm=compression)
    found.append([(result.as_numpy("OUTPUT0") == a + b).all() and (result.as_numpy("OUTPUT1") == a - b).all(), result.get_response().id])
top = client.infer("of_our_own", inputs, outputs=[grpc.InferRequestedOutput("OUTPUT0", class_count=2)])
answers = queue.Queue()
client.start_stream(callback=lambda result, error: answers.put((result, error)))
for i in range(3):
    client.async_stream_infer("of_our_own", inputs, request_id=str(i))
client.async_stream_infer("nope", inputs, request_id="3")
streamed = []
for i in range(4):
    result, error = answers.get()
    streamed.append(error.message() if error else result.get_response().id)
client.stop_stream()
stats = client.get_inference_statistics("of_our_own").model_stats[0]
print(json.dumps({"same": [[bool(ok), id] for ok, id in found], "top": [[v.decode() for v in row] for row in top.as_numpy("OUTPUT0")],
    "streamed": streamed, "count": stats.inference_count, "live": client.is_server_live(), "metadata": client.get_server_metadata().name}))
`;

const folder = mkdtempSync(join(tmpdir(), 'skein-triton-'));
let server: SkeinProcess;
/** One process for all programs: importing the client takes longer than most of them. */
let python: Programs | null = null;

beforeAll(async () => {
  const names = triton === undefined ? ['of_our_own'] : LISTED;
  for (const name of names) {
    const source = join(triton ?? '', 'model_repository', name);
    if (name !== 'of_our_own') cpSync(source, join(folder, name), { recursive: true });
    mkdirSync(join(folder, name, '1'), { recursive: true });
  }
  writeFileSync(join(folder, 'of_our_own/1/model.onnx'), addSubModel());
  if (triton !== undefined) {
    const config = join(folder, 'simple_identity/config.pbtxt');
    const text = readFileSync(config, 'utf8').replace('backend: "python"', 'backend: "module"');
    rmSync(config);
    writeFileSync(config, text);
    writeFileSync(join(folder, 'simple_identity/1/model.mjs'), IDENTITY);
  }
  const loaded = names.flatMap((name) => ['--load-model', name]);
  server = await startServer([
    '--model-repository',
    folder,
    '--model-control-mode',
    'explicit',
    ...loaded,
    '--allow-model-upload',
    '--allow-shared-memory',
    '--grpc-port',
    '0',
    '--server-id',
    'triton',
  ]);
});
afterAll(async () => {
  python?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs Python code with these arguments. @returns what it prints */
async function run(code: string, ...args: readonly string[]): Promise<string> {
  python ??= Programs.python(testPython!);
  return (await python.run(`import sys\nsys.argv = ${JSON.stringify(['', ...args])}\n${code}`)).text;
}

function addModel(name: keyof typeof STAND_INS): void {
  const { config, code } = STAND_INS[name];
  mkdirSync(join(folder, name, '1'), { recursive: true });
  writeFileSync(join(folder, name, 'config.yaml'), config);
  writeFileSync(join(folder, name, '1/model.mjs'), code);
}

async function load(name: string): Promise<void> {
  const response = await fetch(`${server.url}/v2/repository/models/${name}/load`, { method: 'POST' });
  expect(response.status).toBe(200);
}

/** After all others, one of which counts the models. */
async function loadDyna(): Promise<void> {
  const directory = join(folder, 'simple_string_dyna_sequence');
  mkdirSync(join(directory, '1'), { recursive: true });
  writeFileSync(join(directory, 'config.pbtxt'), `backend: "module"\n${DYNA_CONFIG}`);
  writeFileSync(join(directory, '1/model.mjs'), DYNA_MODULE);
  await load('simple_string_dyna_sequence');
}

const address = () => server.url.replace('http://', '');

const program = (name: string) => join(triton!, 'client-examples', `${name}.py`);

/** Runs a program of Triton's examples; it prints PASS at its end if it prints that at all. */
async function expectToPass(name: string, args: readonly string[]): Promise<void> {
  const code = `import runpy\nrunpy.run_path(${JSON.stringify(program(name))}, run_name='__main__')`;
  const printed = await run(code, ...args);
  if (readFileSync(program(name), 'utf8').includes('PASS')) expect(`${name}: ${printed}`).toMatch(/PASS/);
}

async function expectAllToPass(
  programs: readonly (readonly [program: string, ...flags: string[]])[],
  url: string,
): Promise<void> {
  for (const [name, ...flags] of programs) {
    if (flags.includes('--dyna')) await loadDyna();
    await expectToPass(name, ['-u', url, ...flags]);
  }
}

interface Counted {
  model_stats: [{ inference_count: number }];
}

/** A Python whose client of Triton speaks gRPC. */
const hasGrpc = testPython !== null && spawnSync(testPython, ['-c', 'import grpc']).status === 0;

if (!hasGrpc && process.env.CI === 'true')
  throw new Error("Triton's client is tested over gRPC, too: see test/requirements.txt.");

/** Triton's examples are no part of this project: .ci/run looks for them. */
const itWithExamples = triton === undefined ? () => {} : it;

describe.skipIf(testPython === null)("Triton's client from pip", () => {
  it('reads and writes tensors in every form', async () => {
    const answer = JSON.parse(await run(SCRIPT, address()));
    expect(answer).toEqual({
      same: Array(6).fill([true, '7']),
      top: [
        ['16:15', '15:14'],
        ['32:15', '31:14'],
      ],
      count: 14,
      live: true,
      metadata: 'triton',
    });
  });

  itWithExamples('runs its own programs', async () => {
    expect(existsSync(join(triton!, 'client-examples'))).toBe(true);
    await expectAllToPass(HTTP_PROGRAMS, address());
    await load('simple');
    await expectToPass('reuse_infer_objects_client', ['-i', 'http', '-u', address()]);
  });
});

describe.skipIf(!hasGrpc)("Triton's client from pip over gRPC", () => {
  it('reads and writes tensors, and streams', async () => {
    const before = (await (await fetch(`${server.url}/v2/models/of_our_own/stats`)).json()) as Counted;
    const answer = JSON.parse(await run(GRPC_SCRIPT, grpcAddress(server)));
    expect(answer).toEqual({
      same: Array(3).fill([true, '7']),
      top: [
        ['16:15', '15:14'],
        ['32:15', '31:14'],
      ],
      streamed: ['0', '1', '2', "Request for unknown model: 'nope' is not found"],
      count: before.model_stats[0].inference_count + 14,
      live: true,
      metadata: 'triton',
    });
  });

  itWithExamples('runs its own programs', async () => {
    await loadDyna();
    await expectAllToPass(GRPC_PROGRAMS, grpcAddress(server));
    addModel('repeat_int32');
    await load('repeat_int32');
    await expectToPass('simple_grpc_custom_repeat', ['-u', grpcAddress(server)]);
    await load('simple');
    await expectToPass('reuse_infer_objects_client', ['-i', 'grpc', '-u', grpcAddress(server)]);
  });

  itWithExamples('runs its own program that looks for leaks, over both protocols', async () => {
    addModel('custom_identity_int32');
    await load('custom_identity_int32');
    // It has its addresses built in.
    const code = readFileSync(program('memory_growth_test'), 'utf8')
      .replaceAll('localhost:8001', grpcAddress(server))
      .replaceAll('localhost:8000', address());
    for (const protocol of ['grpc', 'http']) await run(code, '-i', protocol, '-r', '50');
  });
});
