// An instance without a model: it answers the words of a batch one after the other, each with itself. Words
// that do something: exit, throw (the worker dies), hang (for ever, without giving its thread back), wait
// (until a test writes to the file of its name).
import { appendFileSync, existsSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { BatchClaims } from '../../../dist/callbacks/infer/batch-claims.js';

const { port, name, folder, missing, claims: memory } = workerData;
const claims = memory ? new BatchClaims(memory) : null;
if (missing) throw new Error(`There is no model for ${name}.`);

const pause = () => new Promise((resolve) => setTimeout(resolve, 2));

port.on('message', (command) => {
  queue = queue.then(() => run(command));
});
let queue = Promise.resolve();
port.postMessage({ type: 'ready', info: { name } });

async function run({ type, words, slot }) {
  if (type === 'shutdown') {
    port.postMessage({ type: 'closed' });
    port.close();
    return;
  }
  if (claims?.claim(slot) === false) {
    port.postMessage({ type: 'dropped', slot });
    return;
  }
  if (folder) appendFileSync(`${folder}/${name}.log`, `${words.join(' ')}\n`);
  for (const word of words) {
    if (word === 'exit') process.exit(7);
    if (word === 'throw') throw new Error('The model broke.');
    if (word === 'hang') for (;;);
    if (word.startsWith('wait:')) while (!existsSync(word.slice(5))) await pause();
  }
  port.postMessage({ type: 'done', words, name });
}
