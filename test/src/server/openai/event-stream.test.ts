import { describe, expect, it } from 'vitest';
import {
  DEFAULT_EVENT_STREAM_OPTIONS,
  EventStream,
  type EventStreamOptions,
} from '../../../../src/server/openai/event-stream.js';

function open(options: Partial<EventStreamOptions> = {}, disconnect: (() => void) | null = null) {
  let gone = 0;
  const onGone = () => {
    gone++;
  };
  const stream = new EventStream({ ...DEFAULT_EVENT_STREAM_OPTIONS, ...options }, { onGone, disconnect });
  return { stream, gone: () => gone };
}

const text = (body: ReadableStream<Uint8Array>) => new Response(body).text();

describe('EventStream', () => {
  it('carries what is written, in order, to the end', async () => {
    const { stream, gone } = open();
    stream.write('data: 1\n\n');
    stream.write('data: é\n\n');
    stream.close();
    expect(await text(stream.body)).toBe('data: 1\n\ndata: é\n\n');
    expect([stream.closed, gone()]).toEqual([true, 0]);
  });

  it('ignores what is written after its end, and a second end', async () => {
    const { stream, gone } = open();
    stream.close();
    expect(stream.write('late')).toBeUndefined();
    stream.close();
    expect(await text(stream.body)).toBe('');
    expect(gone()).toBe(0);
  });

  it('lets the writer wait while the reader is behind, and go on when it reads', async () => {
    const { stream } = open({ highWaterMark: 4 });
    const behind = stream.write('12345678');
    expect(behind).toBeInstanceOf(Promise);
    const reader = stream.body.getReader();
    await reader.read();
    await behind;
    expect(stream.write('1')).toBeUndefined();
    await reader.cancel();
  });

  it('says once that the reader left, and lets a waiting writer go', async () => {
    const { stream, gone } = open({ highWaterMark: 1 });
    const behind = stream.write('12');
    await stream.body.cancel();
    await behind;
    await stream.body.cancel();
    expect([stream.closed, gone()]).toEqual([true, 1]);
  });

  it('breaks a silence with comments, as long as there is one', async () => {
    const { stream } = open({ keepAliveMs: 5 });
    const reader = stream.body.getReader();
    const { value } = await reader.read();
    expect(new TextDecoder().decode(value)).toBe(': keep-alive\n\n');
    await reader.cancel();
  });

  it('closes the connection of a reader that stalls, and says that it is gone', async () => {
    let disconnected = 0;
    const { stream, gone } = open({ highWaterMark: 1, stallLimitMs: 5 }, () => disconnected++);
    await stream.write('12');
    expect([disconnected, gone(), stream.closed]).toEqual([1, 1, true]);
  });

  it('fails the body where there is no connection to close', async () => {
    const { stream, gone } = open({ highWaterMark: 1, stallLimitMs: 5 });
    await stream.write('12');
    expect(gone()).toBe(1);
    await expect(text(stream.body)).rejects.toThrow('did not read its stream in time');
  });
});
