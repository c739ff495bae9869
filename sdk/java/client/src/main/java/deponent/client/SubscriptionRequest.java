package deponent.client;

import deponent.rpc.Decoder;
import deponent.rpc.Request;

/**
 * What a {@link Client} subscribes to, and how its values are read.
 *
 * @param open the request that opens it, with the subscription's id as result
 * @param read the reader of each value
 * @param <T> the type of values
 */
public record SubscriptionRequest<T>(Request<String> open, Decoder<T> read) {}
