// Plays the series of batch-cases.mjs on a Triton and writes its answers to test/goldens/triton/batches.json:
//
//     node tools/reference/triton/record-batches.mjs http://localhost:9000 http://localhost:9002/metrics DIR
//
// The server has the models that write-batch-models.mjs wrote to DIR, and was asked nothing yet. It forms a batch while its instance is still busy, so that
// requests of `too_many_rows` and `preferred` are sometimes in other batches: the file has a run in which the last ones of the former share one.
import { writeFileSync } from 'node:fs';
import { play, SERIES } from './batch-cases.mjs';

const [url, metrics, directory] = process.argv.slice(2);
const waiting = async (name) => {
  const text = await (await fetch(metrics)).text();
  return Number(
    new RegExp(`^nv_inference_pending_request_count\\{model="${name}".*\\} (\\d+)$`, 'm').exec(text)[1],
  );
};
const { version } = await (await fetch(`${url}/v2`)).json();
const models = [];
for (const name of Object.keys(SERIES)) models.push(await play(name, { url, waiting, directory }));
const file = new URL('../../../test/goldens/triton/batches.json', import.meta.url);
writeFileSync(file, `${JSON.stringify({ server: `tritonserver ${version}`, models }, null, 1)}\n`);
