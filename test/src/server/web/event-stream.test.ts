import { describe, expect, it } from 'vitest';
import {
  DEFAULT_EVENT_STREAM_OPTIONS,
  EventStream,
  type EventStreamOptions,
} from '../../../../src/server/web/event-stream.js';
import type { StreamConnection } from '../../../../src/server/web/stream-connection.js';

function open(options: Partial<EventStreamOptions> = {}, connection: StreamConnection | null = null) {
  let gone = 0;
  let drained = 0;
  const onGone = () => {
    gone++;
  };
  const onDrain = () => {
    drained++;
  };
  const all = { ...DEFAULT_EVENT_STREAM_OPTIONS, ...options };
  const stream = new EventStream(all, { onGone, onDrain, connection });
  return { stream, gone: () => gone, drained: () => drained };
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
    expect(stream.write('late')).toBe(true);
    stream.close();
    expect(await text(stream.body)).toBe('');
    expect(gone()).toBe(0);
  });

  it('lets the writer wait while the reader is behind, and go on when it reads', async () => {
    const { stream, drained } = open({ highWaterMark: 4 });
    expect(stream.write('12345678')).toBe(false);
    expect(drained()).toBe(0);
    const reader = stream.body.getReader();
    await reader.read();
    expect(drained()).toBe(1);
    expect(stream.write('1')).toBe(true);
    await reader.cancel();
  });

  it('says once that the reader left, and lets a waiting writer go', async () => {
    const { stream, gone, drained } = open({ highWaterMark: 1 });
    stream.write('12');
    await stream.body.cancel();
    await stream.body.cancel();
    expect([stream.closed, gone(), drained()]).toEqual([true, 1, 1]);
  });

  it('breaks a silence with comments, as long as there is one', async () => {
    const { stream } = open({ keepAliveMs: 5 });
    const reader = stream.body.getReader();
    const { value } = await reader.read();
    expect(new TextDecoder().decode(value)).toBe(': keep-alive\n\n');
    await reader.cancel();
  });

  /** A connection that notes what is written past the body, and is as full as the test says. */
  function fakeConnection() {
    const listeners: (() => void)[] = [];
    const connection = {
      headersSent: false,
      destroyed: false,
      writableNeedDrain: false,
      written: [] as string[],
      write(text: string) {
        connection.written.push(text);
        return !connection.writableNeedDrain;
      },
      flush: () => {},
      once: (_: 'drain', listener: () => void) => listeners.push(listener),
      drain() {
        connection.writableNeedDrain = false;
        for (const listener of listeners.splice(0)) listener();
      },
      destroy() {
        connection.destroyed = true;
      },
    };
    return connection;
  }

  it('closes the connection of a reader that stalls, and says that it is gone', async () => {
    const connection = fakeConnection();
    const { stream, gone } = open({ highWaterMark: 1, stallLimitMs: 5 }, connection);
    stream.write('12');
    await expect.poll(() => stream.closed).toBe(true);
    expect([connection.destroyed, gone(), stream.closed]).toEqual([true, 1, true]);
  });

  it.each([
    { what: 'once', destroyed: false, counted: 1 },
    { what: 'not where the server has cut it off before', destroyed: true, counted: 0 },
  ])('counts a reader that stalls $what', async ({ destroyed, counted }) => {
    const connection = fakeConnection();
    let stalls = 0;
    const onStall = () => stalls++;
    const { stream } = open({ highWaterMark: 1, stallLimitMs: 5, onStall }, connection);
    stream.write('12');
    if (destroyed) connection.destroy();
    await expect.poll(() => stream.closed).toBe(true);
    expect(stalls).toBe(counted);
  });

  it('writes to the connection itself once the headers and all before are out, in order', async () => {
    const connection = fakeConnection();
    const { stream, gone } = open({}, connection);
    const reader = stream.body.getReader();
    const first = reader.read();
    stream.write('1');
    stream.write('2');
    expect(new TextDecoder().decode((await first).value)).toBe('1');
    // 2 is still in the body: 3 must not pass it.
    connection.headersSent = true;
    stream.write('3');
    expect(connection.written).toEqual([]);
    for (const frame of ['2', '3']) {
      expect(new TextDecoder().decode((await reader.read()).value)).toBe(frame);
    }
    const end = reader.read();
    stream.write('4');
    stream.write('5');
    expect(connection.written).toEqual(['4', '5']);
    stream.close();
    expect(await end).toEqual({ done: true, value: undefined });
    expect(gone()).toBe(0);
  });

  it('waits for a connection that is full, stays silent meanwhile, and cuts it off after the limit', async () => {
    const connection = fakeConnection();
    connection.headersSent = true;
    const { stream, gone, drained } = open({ keepAliveMs: 5, stallLimitMs: 60 }, connection);
    const reader = stream.body.getReader();
    const end = reader.read();
    await expect.poll(() => connection.written).toContain(': keep-alive\n\n');
    connection.writableNeedDrain = true;
    expect([stream.write('1'), stream.write('2'), drained()]).toEqual([false, false, 0]);
    connection.drain();
    expect(drained()).toBe(1);
    expect(stream.write('3')).toBe(true);
    connection.writableNeedDrain = true;
    const before = connection.written.length;
    stream.write('4');
    await expect.poll(() => stream.closed).toBe(true);
    expect(connection.written.slice(before)).toEqual(['4']);
    expect([connection.destroyed, gone(), stream.closed]).toEqual([true, 1, true]);
    await reader.cancel();
    await end;
  });

  it('fails the body where there is no connection to close', async () => {
    const { stream, gone } = open({ highWaterMark: 1, stallLimitMs: 5 });
    stream.write('12');
    await expect.poll(gone).toBe(1);
    await expect(text(stream.body)).rejects.toThrow('did not read its stream in time');
  });
});
