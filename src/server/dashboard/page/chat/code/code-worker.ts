import { common, createLowlight } from 'lowlight';
import { type CodeAnswer, type CodeQuestion, runsOf } from './code-runs.js';

// A worker of its own: what a model has written may take any time to read, and the page ends the worker then.
const lowlight = createLowlight(common);

self.addEventListener('message', ({ data: { code, language } }: MessageEvent<CodeQuestion>) => {
  const runs = lowlight.registered(language) ? runsOf(lowlight.highlight(language, code)) : null;
  self.postMessage({ runs } satisfies CodeAnswer);
});
