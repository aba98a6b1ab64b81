// skein serve over the steady executor, which answers its parent's questions about the event loop:
// node serve.mjs FLAGS_AS_JSON MODULE_URL
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { serve } from '../../../dist/src/commands/serve.js';
import { loadConfig } from '../../../dist/src/settings/config.js';

const [flags, executorModule] = process.argv.slice(2);
const delay = monitorEventLoopDelay({ resolution: 1 });
const session = new Session();
process.on('message', async (question) => {
  if (question === 'profile') {
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    process.send({});
    return;
  }
  if (question.startsWith('write ')) {
    const { profile } = await session.post('Profiler.stop');
    writeFileSync(question.slice(6), JSON.stringify(profile));
    process.send({});
    return;
  }
  if (question === 'begin') {
    delay.reset();
    delay.enable();
    process.send({});
    return;
  }
  delay.disable();
  process.send({ longestMs: delay.max / 1e6, p99Ms: delay.percentile(99) / 1e6, ...process.memoryUsage() });
});
await serve({ ...loadConfig({ flags: JSON.parse(flags) }), executorModule });
