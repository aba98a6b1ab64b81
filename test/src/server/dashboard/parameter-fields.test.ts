import { describe, expect, it } from 'vitest';
import { RARE_FIELDS, USUAL_FIELDS } from '../../../../src/server/dashboard/page/chat/parameter-fields.js';
import { chatRequestSchema } from '../../../../src/server/openai/schemas/chat.js';

describe('the fields of the parameters', () => {
  it('are fields of a chat, each once, within its limits', () => {
    const fields = [...USUAL_FIELDS, ...RARE_FIELDS];
    expect(new Set(fields.map(({ name }) => name)).size).toBe(fields.length);
    expect(new Set(fields.map(({ label }) => label)).size).toBe(fields.length);
    const message = { role: 'user', content: 'a' };
    for (const { name, attributes } of fields) {
      for (const value of [attributes.min, attributes.max ?? '7']) {
        const body = { model: 'm', messages: [message], [name]: Number(value) };
        expect(chatRequestSchema.safeParse(body), `${name}: ${value}`).toMatchObject({ success: true });
      }
    }
  });
});
