import { describe, expect, it } from 'vitest';
import { AccessTally } from '../../../../src/server/web/access-tally.js';

describe('an access tally', () => {
  it('says nothing where no model was asked', () => {
    expect(new AccessTally(0).fields()).toEqual({});
  });

  it('adds up answers, and counts the prompt that several share once', () => {
    const tally = new AccessTally(performance.now() - 5);
    const one = tally.begin({ model: 'm', promptTokens: 7 });
    const other = tally.begin({ model: 'm', promptTokens: 7, sharesPrompt: true });
    one.onCachedTokens(4);
    other.onCachedTokens(7);
    one.onTokens(2);
    other.onTokens(1);
    one.onEnd('stop');
    one.onEnd('error');
    other.onForgotten(3);
    other.onEnd('abort');
    const { firstTokenMs, ...fields } = tally.fields();
    expect(firstTokenMs).toBeGreaterThanOrEqual(5);
    expect(fields).toEqual({
      model: 'm',
      promptTokens: 7,
      cachedTokens: 4,
      completionTokens: 6,
      finishReason: 'stop,abort',
    });
  });

  it('names the models of an ensemble, and has no first token where nothing was generated', () => {
    const tally = new AccessTally(0);
    tally.begin({ model: 'a', promptTokens: 1 }).onEnd('stop');
    tally.begin({ model: 'b', promptTokens: 2 }).onEnd('stop');
    expect(tally.fields()).toMatchObject({ model: 'a,b', promptTokens: 3, finishReason: 'stop' });
    expect(tally.fields()).not.toHaveProperty('firstTokenMs');
  });

  it('takes an answer that still runs for one whose client has left', () => {
    const tally = new AccessTally(0);
    tally.begin({ model: 'a', promptTokens: 1 });
    expect(tally.fields()).toMatchObject({ finishReason: 'abort' });
  });
});
