import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { describeWithTensorFlow } from '../../support/test-tensorflow.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { testPython } from '../support/test-python.js';

/** Every type in binary and in JSON, two requests at once in one batch, and the settings that this client can change. */
const SCRIPT = `
import sys, json
import numpy as np
import tritonclient.http as http
from tritonclient.utils import np_to_triton_dtype
client = http.InferenceServerClient(sys.argv[1], concurrency=2)
rows = {
    "i32": np.array([[1, -(2**31)]], dtype=np.int32), "i64": np.array([[2**53 + 1, -(2**63) + 1]], dtype=np.int64),
    "u8": np.array([[0, 255]], dtype=np.uint8), "flag": np.array([[True, False]]),
    "text": np.array([["gr\\u00fc\\u00df".encode(), b""]], dtype=np.object_), "f32": np.array([[1.5, -3]], dtype=np.float32),
}
expected = {"i32_out": rows["i32"] + 1, "i64_out": rows["i64"] - 1, "u8_out": rows["u8"].astype(np.int32) * 2, "flag_out": ~rows["flag"],
    "text_out": np.array([["gr\\u00fc\\u00df-gr\\u00fc\\u00df".encode(), b"-"]], dtype=np.object_), "f32_out": rows["f32"] / 3}
same = []
for binary in (True, False):
    inputs = []
    for name, data in rows.items():
        inputs.append(http.InferInput(name, data.shape, np_to_triton_dtype(data.dtype)))
        inputs[-1].set_data_from_numpy(data, binary_data=binary)
    outputs = [http.InferRequestedOutput(name, binary_data=binary) for name in expected]
    both = [client.async_infer("types", inputs, outputs=outputs) for _ in range(2)]
    for result in [one.get_result() for one in both]:
        for name, data in expected.items():
            found = result.as_numpy(name)
            if found.dtype.kind == "O":
                found = np.array([[one.encode() if isinstance(one, str) else one for one in row] for row in found], dtype=np.object_)
            same.append(bool((found == data).all()) if found.dtype.kind != "f" else bool(np.allclose(found, data)))
metadata = client.get_model_metadata("types")
levels = client.update_log_settings({"log_verbose_level": 1})
traces = client.get_trace_settings()
print(json.dumps({"same": same, "inputs": [[one["name"], one["datatype"], one["shape"]] for one in metadata["inputs"]],
    "verbose": levels["log_verbose_level"], "level": traces["trace_level"], "platform": metadata["platform"]}))
`;

const suite = testPython === null ? describe.skip : describeWithTensorFlow;

suite('the client of Triton', () => {
  const folder = temporaryFolder('skein-triton-tensorflow-');
  let server: SkeinProcess;

  beforeAll(async () => {
    mkdirSync(join(folder, 'types/1'), { recursive: true });
    const saved = fileURLToPath(new URL('../../fixtures/saved-models/types', import.meta.url));
    cpSync(saved, join(folder, 'types/1/model.savedmodel'), { recursive: true });
    server = await startServer(['--model-repository', folder]);
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('reads every type of a SavedModel, in binary and in JSON', async () => {
    const { stdout } = await promisify(execFile)(testPython!, ['-c', SCRIPT, new URL(server.url).host]);
    expect(JSON.parse(stdout)).toEqual({
      same: Array(24).fill(true),
      inputs: [
        ['f32', 'FP32', [-1, 2]],
        ['flag', 'BOOL', [-1, 2]],
        ['i32', 'INT32', [-1, 2]],
        ['i64', 'INT64', [-1, 2]],
        ['text', 'BYTES', [-1, 2]],
        ['u8', 'UINT8', [-1, 2]],
      ],
      verbose: 1,
      level: ['OFF'],
      platform: 'tensorflow_savedmodel',
    });
  });
});
