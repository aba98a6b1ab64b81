import { expect, it } from 'vitest';
import { ModelChoice } from '../../../../../src/server/dashboard/page/model-choice.js';
import type { ChatModel } from '../../../../../src/server/dashboard/page/models.js';

const model = (id: string, parent: string | null = null): ChatModel => ({
  id,
  created: 1,
  max_model_len: 256,
  parent,
});
const chat = model('chat');
const sql = model('sql', 'chat');
const other = model('other');

it('a page that nobody has chosen or asked anything on is that of any model', () => {
  const choice = new ModelChoice();
  expect(choice.among([], null)).toEqual({ model: null, gone: null });
  expect(choice.among([chat, sql], null)).toEqual({ model: chat, gone: null });
  expect(choice.among([chat, sql], 'sql')).toEqual({ model: sql, gone: null });
  expect(choice.among([other], 'sql')).toEqual({ model: other, gone: null });
});

it('one that was chosen or asked is asked until it goes, and then nobody, until it comes back or another is chosen', () => {
  const choice = new ModelChoice();
  choice.want('sql');
  expect(choice.among([chat, sql], 'chat')).toEqual({ model: sql, gone: null });
  expect(choice.among([chat], 'sql')).toEqual({ model: null, gone: 'sql' });
  expect(choice.among([chat], null)).toEqual({ model: null, gone: 'sql' });
  expect(choice.among([chat, sql], null)).toEqual({ model: sql, gone: null });
  choice.want('chat');
  expect(choice.among([chat, sql], 'sql')).toEqual({ model: chat, gone: null });
});
