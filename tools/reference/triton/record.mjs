// Asks a Triton the requests of cases.mjs and writes its answers to test/goldens/triton/http.json:
//
//     node tools/reference/triton/record.mjs http://localhost:9000
//
// The server has two models of the Python backend under --model-control-mode explicit, both loaded: add_sub (INPUT0 and INPUT1 of INT32 [16] to their
// sum OUTPUT0 and their difference OUTPUT1, max_batch_size 8) and identity (INPUT0 of FP32 [-1] to OUTPUT0, max_batch_size 64). PyPI's nvidia-pytriton
// carries a tritonserver: bin/tritonserver --model-repository DIR --backend-directory backends, the stub of the Python in backends/python/.
import { writeFileSync } from 'node:fs';
import { cases } from './cases.mjs';

const [url] = process.argv.slice(2);
const { version } = await (await fetch(`${url}/v2`)).json();
const answers = [];
for (const [method, path, body, headers] of cases) {
  const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(url + path, { method, headers, body: method === 'GET' ? undefined : sent });
  const length = response.headers.get('inference-header-content-length');
  answers.push({
    request: `${method} ${path}`,
    status: response.status,
    ...(length === null ? {} : { jsonLength: Number(length) }),
    body: Buffer.from(await response.arrayBuffer()).toString('latin1'),
  });
}
const file = new URL('../../../test/goldens/triton/http.json', import.meta.url);
writeFileSync(file, `${JSON.stringify({ server: `tritonserver ${version}`, answers }, null, 1)}\n`);
