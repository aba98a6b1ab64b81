// Plays the series of sequence-cases.mjs on a Triton and writes its answers to test/goldens/triton/sequences.json:
//
//     node tools/reference/triton/record-sequences.mjs http://localhost:9000 http://localhost:9002/metrics DIR
//
// The server has the models that write-sequence-models.mjs wrote to DIR, and was asked nothing yet.
import { writeFileSync } from 'node:fs';
import { play, SERIES } from './sequence-cases.mjs';

const [url, metrics, directory] = process.argv.slice(2);
const waiting = async (name) => {
  const text = await (await fetch(metrics)).text();
  const pattern = new RegExp(`^nv_inference_pending_request_count\\{model="${name}".*\\} (\\d+)$`, 'm');
  return Number(pattern.exec(text)[1]);
};
const { version } = await (await fetch(`${url}/v2`)).json();
const models = [];
for (const name of Object.keys(SERIES)) models.push(await play(name, { url, waiting, directory }));
const file = new URL('../../../test/goldens/triton/sequences.json', import.meta.url);
writeFileSync(file, `${JSON.stringify({ server: `tritonserver ${version}`, models }, null, 1)}\n`);
