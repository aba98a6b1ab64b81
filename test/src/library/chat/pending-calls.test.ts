import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { tool } from '../../../../src/index.js';
import { call, scriptedChat } from './scripted-chat.js';

const ask = tool({
  description: 'Asks',
  input: z.object({ what: z.string(), times: z.number().default(1) }),
});
const now = tool({ execute: () => 'noon' });
const tools = { ask, now };
const twoCalls = `Wait. ${call('now', {})}${call('ask', { what: 'name' })}${call('ask', { what: 'age', times: 2 })}`;

describe('tools of a chat without execute', () => {
  it('end the turn with their calls, beside those that were run, and go on with what the program got', async () => {
    const { chat, prompts, engine } = await scriptedChat([twoCalls, 'Ada, 36.'], {
      tools,
      toolChoice: 'auto',
    });
    const events: string[] = [];
    let first = null;
    for await (const event of chat.stream('Who?')) {
      if (event.type !== 'text' && event.type !== 'call-part') events.push(event.type);
      if (event.type === 'answer') first = event.answer;
    }
    expect(events).toEqual(['call', 'pending', 'pending', 'answer']);
    expect(first).toMatchObject({ text: 'Wait.', rounds: 1, calls: [{ name: 'now', result: 'noon' }] });
    const [name, age] = first!.pending;
    expect([name, age]).toMatchObject([
      { name: 'ask', arguments: { what: 'name', times: 1 } },
      { name: 'ask', arguments: { what: 'age', times: 2 } },
    ]);
    expect(chat.pending).toEqual(first!.pending);
    const answer = await chat.send({
      results: [
        { id: age!.id, error: 'unknown' },
        { id: name!.id, result: { name: 'Ada' } },
      ],
    });
    expect(answer).toMatchObject({ text: 'Ada, 36.', pending: [], calls: [], rounds: 1 });
    expect(chat.pending).toEqual([]);
    expect(chat.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'Who?'],
      ['assistant', 'Wait.'],
      ['tool', 'noon'],
      ['tool', '{"name":"Ada"}'],
      ['tool', '{"error":"unknown"}'],
      ['assistant', 'Ada, 36.'],
    ]);
    expect(prompts()[1]).toMatch(/noon.*"name":"Ada".*unknown/s);
    expect(engine.requests).toHaveLength(2);
  });

  it('wait in a saved chat too', async () => {
    const one = await scriptedChat([twoCalls], { tools });
    const { pending } = await one.chat.send('Who?');
    const saved: unknown = JSON.parse(JSON.stringify(one.chat.save()));
    const two = await scriptedChat(['Ada.'], { tools, saved });
    expect(two.chat.pending).toEqual(pending);
    const results = pending.map(({ id }) => ({ id, result: 'x' }));
    expect((await two.chat.send({ results })).text).toBe('Ada.');
    const other = await scriptedChat([], { saved });
    expect(other.chat.pending.map((one) => one.arguments)).toEqual([
      { what: 'name' },
      { what: 'age', times: 2 },
    ]);
  });

  it('have wrong arguments told to the model', async () => {
    const { chat } = await scriptedChat([call('ask', { what: 5 }), call('ask', { what: 'x' })], { tools });
    const { calls, pending, rounds } = await chat.send('Who?');
    expect(calls[0]!.error).toMatch(/^The arguments are wrong: what: /);
    expect([pending.length, rounds]).toEqual([1, 2]);
  });

  it('are not forced again by a choice when their results come', async () => {
    const { chat, engine } = await scriptedChat([call('ask', { what: 'x' }), 'Done.'], { tools });
    const { pending } = await chat.send('Who?', { toolChoice: 'required' });
    await chat.send({ results: [{ id: pending[0]!.id, result: 1 }] }, { toolChoice: 'required' });
    expect(engine.requests.map(({ guide }) => guide !== undefined)).toEqual([true, false]);
  });

  it('refuse what is said before their results, and results that do not fit, and wait on', async () => {
    const { chat } = await scriptedChat([twoCalls, 'Ada.'], { tools });
    await expect(chat.send({ results: [] })).rejects.toThrow('No call of this chat waits for a result.');
    const { pending } = await chat.send('Who?');
    const [one, two] = pending.map(({ id }) => ({ id, result: 'x' }));
    await expect(chat.send('Well?')).rejects.toMatchObject({
      reason: 'waiting',
      message: expect.stringMatching(/^2 calls of this chat wait for results \(ask \S+, ask \S+\); send/),
    });
    const circular: unknown[] = [];
    circular.push(circular);
    for (const [results, message] of [
      [[one], /^results lack ask \S+, which waits for one too\.$/],
      [[one, two, two], 'results have two for one call'],
      [
        [one, { id: 'call_9', result: 1 }],
        /^results\[1\] is for the call "call_9", and those that wait are ask/,
      ],
      [[one, { ...two, error: 'x' }], 'results[1] must have either result or error.'],
      [[one, { id: two!.id }], 'results[1] must have either result or error.'],
      [[one, { id: two!.id, error: 5 }], 'results[1] has error 5; it must be a text.'],
      [[one, { ...two, more: 1 }], 'results[1] has "more"'],
      [[one, 5], 'results[1] is 5; it must be { id, result } or { id, error }.'],
      [[one, { id: two!.id, result: circular }], 'cannot be written as JSON'],
    ] as const) {
      await expect(chat.send({ results } as never)).rejects.toThrow(message);
    }
    expect(chat.pending).toEqual(pending);
    expect((await chat.send({ results: [one!, two!] })).text).toBe('Ada.');
  });

  it('stand in the way of an object, unless they cannot be called', async () => {
    const { chat } = await scriptedChat(['{"a": 1}'], { tools });
    const object = z.object({ a: z.number() });
    await expect(chat.send('Who?', { object })).rejects.toThrow(
      /^object needs functions that are run here: ask has no execute, .*; give toolChoice 'none' with it\.$/,
    );
    expect((await chat.send('Who?', { object, toolChoice: 'none' })).object.a).toBe(1);
  });
});
