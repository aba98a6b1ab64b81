import { expect, it } from 'vitest';
import { EngineEvents } from '../../../src/serving/start-engine.js';

it('What fails while an engine is loaded is told to the first listener, once, and no more than 16 of it', () => {
  const events = new EngineEvents<number>();
  for (let i = 0; i < 20; i++) events.emitError(new Error(`early ${i}`));
  const first: string[] = [];
  const second: string[] = [];
  events.onError(({ message }) => first.push(message));
  events.onError(({ message }) => second.push(message));
  events.emitError(new Error('late'));
  expect(first).toEqual([...Array.from({ length: 16 }, (_, i) => `early ${i}`), 'late']);
  expect(second).toEqual(['late']);
});
