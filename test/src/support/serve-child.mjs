// skein serve with an executor of the test's own, and further options of loadModel:
// node serve-child.mjs FLAGS_AS_JSON MODULE_URL OPTIONS_AS_JSON
// Started with --expose-gc and a channel, it says what memory it holds when it is asked.
import { serve } from '../../../dist/src/commands/serve.js';
import { OPTION_NAMES } from '../../../dist/src/options/table.js';
import { loadConfig } from '../../../dist/src/settings/config.js';

const [given, executorModule, more] = process.argv.slice(2);
const flags = JSON.parse(given);
for (const name of Object.keys(flags)) {
  if (!OPTION_NAMES.includes(name)) throw new Error(`There is no option ${name}.`);
}

process.on('message', () => {
  // Twice: what finalizers let go of in the first is gone after the second.
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external, rss } = process.memoryUsage();
  process.send({ heap: heapUsed, external, rss });
});
process.channel?.unref();

await serve({ ...loadConfig({ flags }), executorModule, ...JSON.parse(more) });
