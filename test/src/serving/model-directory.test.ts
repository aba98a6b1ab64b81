import { describe, expect, it } from 'vitest';
import { followModels, LiveModels, type ModelChange } from '../../../src/serving/model-directory.js';
import type { ServedGenerator } from '../../../src/serving/served-model.js';
import { FakeEngine } from '../support/fake-engine.js';
import { directoryOf } from '../support/served-models.js';
import { toyModel } from '../support/toy-server.js';

const model = (id: string, fields: Partial<ServedGenerator> = {}) =>
  toyModel(new FakeEngine(() => []), { id, ...fields });

/** The changes that a directory reports, as texts. */
function noted() {
  const changes: string[] = [];
  return { changes, listener: ({ kind, model: { id } }: ModelChange) => void changes.push(`${kind} ${id}`) };
}

describe('a directory of models', () => {
  it('finds a model by its name or an alias, and lists them in the order in which they came', () => {
    const [chat, code] = [model('chat', { aliases: ['gpt-4', 'gpt-5'] }), model('code')];
    const models = directoryOf(chat, code);
    expect(models.list()).toEqual([chat, code]);
    expect(['chat', 'gpt-4', 'gpt-5', 'code', 'gpt-6'].map((name) => models.find(name)?.id)).toEqual([
      'chat',
      'chat',
      'chat',
      'code',
      undefined,
    ]);
    const before = models.list();
    expect(models.remove('chat')).toBe(chat);
    expect(models.list()).toEqual([code]);
    expect(['chat', 'gpt-4', 'gpt-5', 'code'].map((name) => models.find(name)?.id)).toEqual([
      undefined,
      undefined,
      undefined,
      'code',
    ]);
    // A walk through the list sees it as it was, while models come and go.
    expect(before).toEqual([chat, code]);
    models.add(chat);
    expect(models.list()).toEqual([code, chat]);
  });

  it('removes by the own name alone, and nothing where there is none', () => {
    const models = directoryOf(model('chat', { aliases: ['gpt-4'] }));
    expect(models.remove('gpt-4')).toBeUndefined();
    expect(models.remove('code')).toBeUndefined();
    expect(models.find('gpt-4')?.id).toBe('chat');
  });

  it.each([
    ['its name is one already', model('chat'), 'chat'],
    ['its name is an alias already', model('gpt-4'), 'gpt-4'],
    ['an alias of it is a name already', model('new', { aliases: ['free', 'chat'] }), 'chat'],
    ['an alias of it is an alias already', model('new', { aliases: ['gpt-4'] }), 'gpt-4'],
  ])('refuses a model where %s, and is as it was', (_, second, name) => {
    const models = directoryOf(model('chat', { aliases: ['gpt-4'] }));
    const { changes, listener } = noted();
    models.onChange(listener);
    expect(() => models.add(second)).toThrow(
      `The model '${second.id}' cannot be added: '${name}' is a name of the model 'chat' already.`,
    );
    expect(models.list().map(({ id }) => id)).toEqual(['chat']);
    expect(models.find('free')).toBeUndefined();
    expect(changes).toEqual([]);
  });

  it('takes a model whose alias is its own name', () => {
    const models = directoryOf(model('chat', { aliases: ['chat', 'chat'] }));
    expect(models.find('chat')?.id).toBe('chat');
    models.remove('chat');
    expect(models.find('chat')).toBeUndefined();
  });

  it('tells of each change, after it is one, until the listener leaves', () => {
    const models = new LiveModels();
    const { changes, listener } = noted();
    const leave = models.onChange((change) => {
      const isThere = models.list().includes(change.model);
      expect([isThere, models.find(change.model.id) !== undefined]).toEqual(
        Array(2).fill(change.kind !== 'removed'),
      );
      listener(change);
    });
    const chat = model('chat');
    models.add(chat);
    chat.state.restart(new Error('it died'));
    chat.state.recover();
    chat.state.fail(new Error('it died for good'));
    models.remove('chat');
    // The model is removed: changes of its engine are not reported any more.
    chat.state.recover();
    expect(changes).toEqual(['added chat', 'state chat', 'state chat', 'state chat', 'removed chat']);
    leave();
    models.add(chat);
    expect(changes).toHaveLength(5);
  });

  it('is followed as if each model had come just now', () => {
    const models = directoryOf(model('chat'));
    const { changes, listener } = noted();
    const leave = followModels(models, listener);
    models.add(model('code'));
    models.remove('chat');
    leave();
    models.remove('code');
    expect(changes).toEqual(['added chat', 'added code', 'removed chat']);
  });

  it('tells all who listened when it changed, also where one of them leaves or changes it further', () => {
    const models = new LiveModels();
    const { changes, listener } = noted();
    const leave = models.onChange(({ kind }) => {
      leave();
      if (kind === 'added') models.remove('chat');
    });
    models.onChange(listener);
    models.add(model('chat'));
    expect(changes.toSorted()).toEqual(['added chat', 'removed chat']);
    expect(models.list()).toEqual([]);
  });
});
