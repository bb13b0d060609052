#include "CQREncode.h"
