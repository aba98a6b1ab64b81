// @ts-check
// A lipogram: a logits post-processor bans every token with an e, and the story has none.      npm install skein
//
//     node main.mjs "Tell me a story about a dog"
import { fileURLToPath } from 'node:url';
import { Skein } from 'skein';

const demo = new URL('models/demo/gosling', import.meta.resolve('skein/package.json'));
const skein = await Skein.load({
  model: process.env.MODEL ?? fileURLToPath(demo),
  logitsPostProcessorModule: new URL('./processors.mjs', import.meta.url),
});
const messages = [{ role: 'user', content: process.argv[2] ?? 'Tell me a story about a dog' }];
const ask = { messages, maxTokens: 80, temperature: 0.8, seed: 1n };
const [free, without] = await Promise.all([
  skein.complete(ask),
  skein.complete({ ...ask, logitsPostProcessor: 'withoutE' }), // together with the other, in the same batch
]);
console.log(`With:    ${free.text.trim()}\n\nWithout: ${without.text.trim()}`);
await skein.close();
