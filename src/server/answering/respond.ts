import type { TextPiece } from '../../generation/text-generation.js';
import { type ApiError, clientLeft, toApiError } from '../web/errors.js';
import type { EventStreamOptions } from '../web/event-stream.js';
import { EventStream } from '../web/event-stream.js';
import type { Exchange } from '../web/exchange.js';
import type { ChoiceRun } from './choice-run.js';

export const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  // Without this header nginx would buffer the stream.
  'x-accel-buffering': 'no',
};

/** An answer in the making, as its reader sees it: see ChoiceRun. */
export type AnswerRun = Pick<ChoiceRun, 'consume' | 'pause' | 'resume' | 'abort' | 'isWaiting'>;

/** Writes the frames of one answer. */
export interface FrameWriter {
  /** Frames of a piece; '' where there is nothing to send. */
  piece(choice: number, piece: TextPiece): string;
  /** Frames between the last piece and [DONE]: in parts of whole frames where they may be long. */
  end(): string | AsyncIterable<string>;
  /** Frame for an error after the stream has begun; absent: the body that an HTTP error would have. */
  error?(error: ApiError): string;
  /** True where [DONE] is the last frame; default true. */
  endsWithDone?: boolean;
  /** Form of the frames; default: server-sent events. */
  form?: StreamForm;
}

/** How a stream is written where it is not as OpenAI's. */
export interface StreamForm {
  /** Default: that of server-sent events. */
  contentType?: string;
  /** Text that its readers skip, sent in a long silence. */
  keepAliveText: string;
}

/**
 * Answers with a stream. Status and headers wait for the first frame, so that a refusal by the engine is still a proper
 * HTTP error; after a long silence (a long prompt) they are sent with a keep-alive comment, but not before an engine has taken the request:
 * one that waits for an engine elsewhere may still be refused.
 */
export async function respondWithStream(
  run: AnswerRun,
  writer: FrameWriter,
  options: EventStreamOptions,
  { signal, connection, logError }: Exchange,
): Promise<Response> {
  // Until the body is read, this signal alone shows that the client left.
  signal.addEventListener('abort', () => run.abort(), { once: true });
  if (signal.aborted) run.abort();
  const { form } = writer;
  const ofForm = form === undefined ? options : { ...options, keepAliveText: form.keepAliveText };
  const stream = new EventStream(ofForm, {
    onGone: () => run.abort(),
    onDrain: () => run.resume(),
    connection,
  });
  let begin: () => void = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  let headersSent = false;
  const breakSilence = () => {
    if (run.isWaiting) patience.refresh();
    else begin();
  };
  const patience = setTimeout(breakSilence, options.keepAliveMs);
  let refusal: unknown = null;
  const finished = run
    .consume((choice, piece) => {
      const frames = writer.piece(choice, piece);
      if (frames === '') return;
      if (!stream.write(frames)) run.pause();
      begin();
    })
    .then(
      async () => {
        const rest = writer.end();
        const done = writer.endsWithDone === false ? '' : 'data: [DONE]\n\n';
        if (typeof rest === 'string') stream.write(rest + done);
        else {
          for await (const frames of rest) {
            stream.write(frames);
            begin();
          }
          if (done !== '') stream.write(done);
        }
        stream.close();
      },
      (error: unknown) => {
        if (headersSent) {
          const apiError = toApiError(error);
          if (apiError.status === 500) logError(error);
          stream.write(writer.error?.(apiError) ?? `data: ${JSON.stringify(apiError.body())}\n\n`);
        } else refusal = error;
        stream.close();
      },
    )
    .then(begin);
  void finished;
  await begun;
  clearTimeout(patience);
  if (refusal !== null) throw refusal;
  headersSent = true;
  const contentType = form?.contentType === undefined ? {} : { 'content-type': form.contentType };
  return new Response(stream.body, { headers: { ...STREAM_HEADERS, ...contentType } });
}

/** Collects an answer for a client that does not stream; if the client leaves, the request ends. */
export async function collect(
  run: AnswerRun,
  clientSignal: AbortSignal,
  onPiece: (choice: number, piece: TextPiece) => void,
): Promise<void> {
  const onGone = () => run.abort();
  clientSignal.addEventListener('abort', onGone, { once: true });
  if (clientSignal.aborted) run.abort();
  try {
    await run.consume(onPiece, true);
  } finally {
    clientSignal.removeEventListener('abort', onGone);
  }
  if (clientSignal.aborted) throw clientLeft();
}
