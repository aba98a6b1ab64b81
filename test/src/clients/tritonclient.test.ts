import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addSubModel } from '../serving/support/onnx-writer.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { testPython } from '../support/test-python.js';

/** Triton's own examples: a model repository, and programs of its client. They are no part of this project. */
const triton = process.env.SKEIN_TEST_TRITON;

/** Programs of the HTTP client that need no shared memory, and what they are started with. */
const PROGRAMS: readonly (readonly [program: string, ...flags: string[]])[] = [
  ['simple_http_infer_client'],
  ['simple_http_async_infer_client'],
  ['simple_http_aio_infer_client'],
  ['simple_http_string_infer_client'],
  ['simple_http_health_metadata'],
  ['simple_http_model_control'],
  ['simple_http_sequence_sync_infer_client'],
  ['simple_http_sequence_sync_infer_client', '--dyna'],
];
/** Models that the programs ask for by name or by number: one of them counts seven. */
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

const folder = mkdtempSync(join(tmpdir(), 'skein-triton-'));
let server: SkeinProcess;

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
    '--server-id',
    'triton',
  ]);
}, 120_000);
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function run(args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(testPython!, args);
  return stdout;
}

/** Behind all others, one of which counts the models. */
async function loadDyna(): Promise<void> {
  const directory = join(folder, 'simple_string_dyna_sequence');
  mkdirSync(join(directory, '1'), { recursive: true });
  writeFileSync(join(directory, 'config.pbtxt'), `backend: "module"\n${DYNA_CONFIG}`);
  writeFileSync(join(directory, '1/model.mjs'), DYNA_MODULE);
  const url = `${server.url}/v2/repository/models/simple_string_dyna_sequence/load`;
  expect((await fetch(url, { method: 'POST' })).status).toBe(200);
}

const address = () => server.url.replace('http://', '');

describe.skipIf(testPython === null)("Triton's client from pip", () => {
  it('reads and writes tensors in every form', async () => {
    const answer = JSON.parse(await run(['-c', SCRIPT, address()]));
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

  // Where Triton's examples are; .ci/run looks for them.
  const itWithExamples = triton === undefined ? () => {} : it;
  itWithExamples('runs its own programs', async () => {
    expect(existsSync(join(triton!, 'client-examples'))).toBe(true);
    for (const [program, ...flags] of PROGRAMS) {
      if (flags.includes('--dyna')) await loadDyna();
      const path = join(triton!, 'client-examples', `${program}.py`);
      const printed = await run([path, '-u', address(), ...flags]);
      if (readFileSync(path, 'utf8').includes('PASS')) expect(`${program}: ${printed}`).toMatch(/PASS/);
    }
  });
});
