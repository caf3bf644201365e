*> Reads a JSON number exactly: COBOL counts in decimal, so 0.1 is 0.1.
*>
*> NUMVAL-F would do, but for 1e3 (it wants 1E+3) and 1E+400 (it says 0).
identification division.
program-id. parse-number.

data division.
working-storage section.
01  text-length         pic 9(4)  comp-5.
01  next-at             pic 9(4)  comp-5.
01  this-character      pic x.
01  is-negative         pic 9.
01  digits              pic x(400).
01  digit-count         pic 9(4)  comp-5.
01  seen-point          pic 9.
*> How many of the digits stand before the point, exponent included.
01  places              pic s9(9) comp-5.
01  exponent            pic s9(9) comp-5.
01  exponent-is-negative pic 9.
01  exponent-digits     pic 9(4)  comp-5.
01  power               pic s9(9) comp-5.
01  exact-digits        pic x(36).
01  exact-value redefines exact-digits pic 9(18)v9(18).

linkage section.
01  number-text         pic x(400).
01  number-value        pic s9(18)v9(18).
01  number-status       pic 9.
    88  number-read     value 0.
    88  not-a-number    value 1.
    88  too-large       value 2.
    88  too-fine        value 3.
    88  too-long        value 4.

procedure division using number-text number-value number-status.
main.
    move 0 to number-value is-negative digit-count seen-point places
              exponent exponent-is-negative exponent-digits
    set number-read to true
    move all "0" to exact-digits
    compute text-length = function length(function trim(number-text trailing))
    move 1 to next-at
    if number-text(1:1) = "-"
        move 1 to is-negative
        move 2 to next-at
    end-if
    *> A full field may have lost its end.
    if text-length = function length(number-text)
        set too-long to true
    end-if
    perform read-character until next-at > text-length or not number-read
    if number-read and (digit-count = 0 or exponent-digits = 1)
        set not-a-number to true
    end-if
    if number-read
        perform place-digits
    end-if
    goback.

read-character.
    move number-text(next-at:1) to this-character
    add 1 to next-at
    evaluate true
        when this-character is numeric and exponent-digits > 0
            perform read-exponent-digit
        when this-character is numeric
            add 1 to digit-count
            move this-character to digits(digit-count:1)
            if seen-point = 0
                add 1 to places
            end-if
        when this-character = "." and seen-point = 0 and digit-count > 0 and exponent-digits = 0
            move 1 to seen-point
        when (this-character = "e" or "E") and digit-count > 0 and exponent-digits = 0
            *> One more than the digits read: zero is "no exponent".
            move 1 to exponent-digits
            if number-text(next-at:1) = "-"
                move 1 to exponent-is-negative
            end-if
            if number-text(next-at:1) = "-" or "+"
                add 1 to next-at
            end-if
        when other
            set not-a-number to true
    end-evaluate.

read-exponent-digit.
    add 1 to exponent-digits
    if exponent-digits > 8
        *> Beyond all bounds, whatever follows.
        move 9999999 to exponent
    else
        compute exponent = exponent * 10 + function numval(this-character)
    end-if.

place-digits.
    if exponent-is-negative = 1
        subtract exponent from places
    else
        add exponent to places
    end-if
    perform varying next-at from 1 by 1 until next-at > digit-count or not number-read
        if digits(next-at:1) not = "0"
            compute power = places - next-at
            evaluate true
                when power > 17
                    set too-large to true
                when power < -18
                    set too-fine to true
                when other
                    move digits(next-at:1) to exact-digits(18 - power:1)
            end-evaluate
        end-if
    end-perform
    if number-read
        move exact-value to number-value
        if is-negative = 1
            compute number-value = 0 - number-value
        end-if
    end-if.

end program parse-number.
