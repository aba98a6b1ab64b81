import { beginningOf } from '../../../../../../texts/file-text.js';
import { startWorker } from '../../../workers.js';
import { AttachmentProblem, quoted } from '../attachment-problem.js';
import { ATTACHMENT_LIMITS } from '../limits.js';
import type { PdfAnswer, PdfQuestion } from './pdf-messages.js';

/** The text of a PDF file, and which part of the file it is; '': all of it. */
export interface PdfText {
  text: string;
  part: string;
}

/**
 * Reads the text of a PDF file in a worker, which ends with it, when the signal is given, or when its time is over.
 * @param data is given away to the worker
 * @param onProgress called with the share of the pages that is read, from 0 to 1
 * @throws AttachmentProblem for a file that is encrypted, damaged, without text, or takes too long
 */
export async function readPdf(
  name: string,
  data: ArrayBuffer,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<PdfText> {
  signal.throwIfAborted();
  const { maxPdfPages: maxPages, maxCharacters, pdfTimeLimitMs } = ATTACHMENT_LIMITS;
  const worker = startWorker('pdf');
  const { port1, port2: port } = new MessageChannel();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const answered = new Promise<PdfText>((resolve, reject) => {
    const fail = (what: string) => reject(new AttachmentProblem(`${quoted(name)} ${what}.`));
    const tooLong = `takes more than ${pdfTimeLimitMs / 1000} seconds to read`;
    timer = setTimeout(() => fail(tooLong), pdfTimeLimitMs);
    signal.addEventListener('abort', () => reject(signal.reason));
    worker.onerror = () => fail('cannot be read: the program for it did not start');
    port1.onmessage = ({ data: answer }: MessageEvent<PdfAnswer>) => {
      if (answer.kind === 'page') return onProgress(answer.page / answer.pages);
      if (answer.kind === 'encrypted') return fail('is encrypted: save it without a password first');
      if (answer.kind === 'damaged') return fail('is damaged: it cannot be read as a PDF');
      if (answer.text === '') return fail('has no text: it may be a scan, whose pages are pictures');
      resolve(partOf(answer, maxCharacters));
    };
  });
  try {
    worker.postMessage({ port, data, maxPages, maxCharacters } satisfies PdfQuestion, [port, data]);
    return await answered;
  } finally {
    clearTimeout(timer);
    port1.close();
    worker.terminate();
  }
}

/** What is taken of the text that was read. */
export function partOf(
  { text, read, pages }: { text: string; read: number; pages: number },
  maxCharacters: number,
): PdfText {
  const taken = beginningOf(text, maxCharacters);
  const isCut = taken.length < text.length;
  if (read === pages && !isCut) return { text: taken, part: '' };
  const of = `${read === 1 ? 'page 1' : `pages 1 to ${read}`} of ${pages}`;
  return { text: taken, part: isCut ? `${of}, cut at its end` : of };
}
