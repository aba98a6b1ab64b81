// Bundled as a script of its own, with pdf.js: the page starts it for each PDF that is attached, and ends it after.
import type { PdfAnswer, PdfQuestion } from './pdf-messages.js';
import { readText } from './read-text.js';

addEventListener('message', async ({ data: question }: MessageEvent<PdfQuestion>) => {
  const say = (answer: PdfAnswer) => question.port.postMessage(answer);
  try {
    await readText(question, say, loadMaps);
  } catch (error) {
    say({ kind: (error as Error).name === 'PasswordException' ? 'encrypted' : 'damaged' });
  }
});

/** Lies next to this script. */
async function loadMaps(): Promise<ArrayBuffer> {
  const response = await fetch(new URL('cmaps.bin', location.href));
  if (!response.ok) throw new Error(`The character maps are not there: ${response.status}.`);
  return response.arrayBuffer();
}
