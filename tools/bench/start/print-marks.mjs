// Loaded before the command line: sends the marks of the start, on the clock of Date.now, when it is asked for them.
import { performance } from 'node:perf_hooks';

process.channel?.unref();
process.once('message', () => {
  const { nodeTiming, timeOrigin } = performance;
  const marks = performance.getEntriesByType('mark').filter(({ name }) => name.startsWith('skein: '));
  const entries = [
    ['node started', nodeTiming.bootstrapComplete],
    ...marks.map(({ name, startTime }) => [name.replace('skein: ', ''), startTime]),
  ];
  process.send?.(Object.fromEntries(entries.map(([name, at]) => [name, timeOrigin + at])));
  process.channel?.unref();
});
process.channel?.unref();
