package deponent.client;

import deponent.eth.Wei;

/** Fees that are not more than a bound. */
record BoundedFees(Fees fees, Wei most) implements Fees {
  @Override
  public Fee fee(Client client) {
    return bounded(fees.fee(client), most);
  }

  static Fee bounded(Fee fee, Wei most) {
    return switch (fee) {
      case Fee.Legacy(Wei price) -> new Fee.Legacy(least(price, most));
      case Fee.Market(Wei whole, Wei tip) -> new Fee.Market(least(whole, most), least(tip, most));
    };
  }

  private static Wei least(Wei one, Wei other) {
    return one.compareTo(other) <= 0 ? one : other;
  }

  @Override
  public Wei blobFee(Client client) {
    return fees.blobFee(client);
  }
}
