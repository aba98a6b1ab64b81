// Asks a Triton everything of ensemble-cases.mjs and writes its answers to test/goldens/triton/ensembles.json:
//
//     node tools/reference/triton/record-ensembles.mjs http://localhost:9000
//
// The server has the models that write-ensemble-models.mjs wrote, under --model-control-mode explicit, with nothing loaded.
import { writeFileSync } from 'node:fs';
import { askAll, ENSEMBLES, MODELS } from './ensemble-cases.mjs';

const [url] = process.argv.slice(2);
const { version } = await (await fetch(`${url}/v2`)).json();
for (const name of [...Object.keys(MODELS), ...Object.keys(ENSEMBLES)]) {
  const { ok, statusText } = await fetch(`${url}/v2/repository/models/${name}/load`, { method: 'POST' });
  if (!ok) throw new Error(`${name} cannot be loaded: ${statusText}`);
}
const file = new URL('../../../test/goldens/triton/ensembles.json', import.meta.url);
writeFileSync(
  file,
  `${JSON.stringify({ server: `tritonserver ${version}`, ...(await askAll(url)) }, null, 1)}\n`,
);
